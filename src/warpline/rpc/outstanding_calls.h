// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/units.h"
#include "warpline/message/endpoint.h"
#include "warpline/rpc/call.h"
#include "warpline/rpc/call_observer.h"
#include "warpline/rpc/call_queue.h"

namespace warpline::rpc {

/// What an endpoint's owner does with the calls that come by a CallQueue: gives them to the endpoint, lets those wait
/// that it has no memory for, in order, and tells of each one's end. Owner: the endpoint's thread.
class OutstandingCalls {
 public:
  /// The queue outlives it.
  explicit OutstandingCalls(CallQueue& queue) : queue_(queue) {}

  /// Does what was ordered, and what is due. `moved`: since the last time something arrived, ended or left, so that the
  /// endpoint may have room again. Returns whether there was anything to do.
  bool advance(message::Endpoint& endpoint, bool moved, Nanos now);
  /// False if the event is not of a call. To be given each event of the endpoint.
  bool handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now);
  /// Who is told of each call, from now on; null: nobody. It outlives this.
  void observe(CallObserver* observer) { observer_ = observer; }
  /// When advance() has something to do next, if nobody orders anything.
  [[nodiscard]] Nanos next_deadline() const { return waiting_until_; }
  /// Takes no more, cancels all there are, those that were ordered too, and tells of their ends.
  void end_all(message::Endpoint& endpoint, Nanos now);

 private:
  void take(message::Endpoint& endpoint, CallQueue::Order order, std::uint32_t index, Nanos now);
  bool give(message::Endpoint& endpoint, std::uint32_t index, Nanos now);
  void wait(std::uint32_t index);
  void cancel(message::Endpoint& endpoint, std::uint32_t index, Nanos now);
  void give_waiting(message::Endpoint& endpoint, Nanos now);
  void expire(Nanos now);
  void end(std::uint32_t index, const CallResult& result, Nanos now);

  CallQueue& queue_;
  CallObserver* observer_ = nullptr;
  std::uint32_t first_waiting_ = CallQueue::kNobody;  ///< the oldest
  std::uint32_t last_waiting_ = CallQueue::kNobody;
  Nanos waiting_until_ = message::kNever;  ///< the first deadline of those who wait
};

}  // namespace warpline::rpc
