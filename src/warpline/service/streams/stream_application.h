// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/stream/stream_receiver.h"

namespace warpline::service {

/// What is done with the bytes of connections. All calls by the lcore that receives them.
class StreamApplication {
 public:
  virtual ~StreamApplication() = default;

  /// Does what is to be done since the last call. True if there was something.
  virtual bool turn(stream::StreamReceiver& receiver, Nanos now) = 0;
  /// True if nothing that could be read is still on its way to where it belongs.
  [[nodiscard]] virtual bool settled() const = 0;
  /// True if it cannot go on: the run ends.
  [[nodiscard]] virtual bool failed() const = 0;
  /// Nothing more will be received: what is held back until there is more of it is so no longer.
  virtual void finish() {}
  /// Gives up what is not settled: nobody reads the rings any more.
  virtual void abandon() = 0;
  /// Aborts up to `most` of the connections that are left, so that their peers learn that not all reached its goal.
  /// Returns how many; 0: none is left. Nothing else is called afterwards.
  virtual std::uint32_t abort_some(stream::StreamReceiver& receiver, std::uint32_t most, Nanos now) = 0;
};

}  // namespace warpline::service
