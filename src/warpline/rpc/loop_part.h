// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "warpline/base/units.h"
#include "warpline/message/endpoint.h"

namespace warpline::rpc {

/// Something that a MessageHost's loop does beside its own calls, on its thread: what a ServerPool is there.
class LoopPart {
 public:
  virtual ~LoopPart() = default;

  /// Is given each event of the endpoint that is neither a request nor of the host's own calls, and requests if it
  /// takes them. False: it is of others.
  virtual bool handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) = 0;
  /// Does what is due. `moved`: since the last time something arrived, ended or left, so that the endpoint may have
  /// room again. Returns whether there was anything to do.
  virtual bool advance(message::Endpoint& endpoint, bool moved, Nanos now) = 0;
  /// Nothing: it takes no requests. Otherwise, where the host has no handler, the first part of those that do is given
  /// them, no more at once than this says; the rest waits with the endpoint.
  [[nodiscard]] virtual std::optional<std::uint32_t> request_room() const { return std::nullopt; }
  /// When advance() has something to do next, if nobody wakes the loop.
  [[nodiscard]] virtual Nanos next_deadline() const = 0;
  /// Cancels what it has with the endpoint, and takes no more: it leaves the loop.
  virtual void leave(message::Endpoint& endpoint, Nanos now) = 0;
  /// After leave() and the events that it brought about: ends what has had none.
  virtual void end_rest(Nanos /*now*/) {}
};

}  // namespace warpline::rpc
