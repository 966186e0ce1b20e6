// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/base/units.h"
#include "warpline/message/endpoint.h"
#include "warpline/rpc/call.h"
#include "warpline/rpc/call_observer.h"
#include "warpline/rpc/call_queue.h"
#include "warpline/rpc/loop_part.h"
#include "warpline/rpc/pool/index_list.h"
#include "warpline/rpc/pool/pool_servers.h"
#include "warpline/rpc/pool/recent_quantile.h"
#include "warpline/rpc/pool/retry_budget.h"
#include "warpline/rpc/pool/server_pool_settings.h"

namespace warpline::rpc {

/// What becomes of the calls of a pool that come by a CallQueue: each goes to a server, waits for one, goes to another
/// one as retry or hedge, and ends once. Owner: the endpoint's thread. After the constructor nothing is allocated.
///
/// A call under way is in one of three lists, or has nothing to wait for but its attempts' ends: `waiting_` for a
/// server that has room, `resting_` until its next attempt, `hedging_` until its second copy leaves.
class PooledCalls final : public LoopPart {
 public:
  /// The queue outlives it.
  PooledCalls(CallQueue& queue, std::span<const SocketAddress> servers, const ServerPoolSettings& settings,
              std::uint64_t seed, Nanos now);

  bool advance(message::Endpoint& endpoint, bool moved, Nanos now) override;
  /// False if the event is neither of a call nor of a session of the pool.
  bool handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  /// The ends of calls that are with the endpoint are events of it.
  void leave(message::Endpoint& endpoint, Nanos now) override;
  /// Ends those whose events did not come.
  void end_rest(Nanos now) override;

  void observe(CallObserver* observer) { observer_ = observer; }  ///< as of OutstandingCalls
  [[nodiscard]] const PoolServers& servers() const { return servers_; }
  [[nodiscard]] const PoolCounters& counters() const { return counters_; }

 private:
  /// One request to one server.
  struct Attempt {
    message::MessageId id;
    PoolServers::Place place;
    bool live = false;
  };
  static constexpr std::size_t kFirst = 0;  ///< the attempt that answers into Call::response
  static constexpr std::size_t kHedge = 1;  ///< the one that answers into the endpoint's memory

  struct Pooled {
    std::array<Attempt, 2> attempts{};
    std::size_t last_server = PoolServers::kNobody;  ///< of the latest first attempt
    Nanos began{};                                   ///< the latest first attempt
    Nanos due{};                                     ///< in `resting_`: when the next attempt begins
    std::uint32_t retries = 0;
    bool active = false;     ///< the place has a call
    bool cancelled = false;  ///< by its caller
    bool settled = false;    ///< `result` is the call's, as soon as no attempt is live
    message::Reach reach{};  ///< the furthest of all attempts
    CallResult result{};
    message::MessageId held{};  ///< of the answer in the endpoint's memory, if `holds`
    bool holds = false;
  };
  enum class Begun : std::uint8_t { yes, no_room, impossible };

  void take(message::Endpoint& endpoint, CallQueue::Order order, std::uint32_t index, Nanos now);
  void start(std::uint32_t index);
  void place(message::Endpoint& endpoint, std::uint32_t index, Nanos now);
  void wait(std::uint32_t index);
  Begun begin(message::Endpoint& endpoint, std::uint32_t index, std::size_t which, Nanos now);
  message::CallStatus submit(message::Endpoint& endpoint, std::uint32_t index, std::size_t which,
                             const PoolServers::Place& place, Nanos now);
  [[nodiscard]] AttemptEnd judge(const Pooled& call, std::size_t which, const message::MessageEvent& event,
                                 Nanos now) const;
  void ended(message::Endpoint& endpoint, std::uint32_t index, std::size_t which, const message::MessageEvent& event,
             Nanos now);
  void settle(message::Endpoint& endpoint, std::uint32_t index, const message::MessageEvent& event, Nanos now);
  bool go_on(message::Endpoint& endpoint, std::uint32_t index, const message::MessageEvent& event, Nanos now);
  void cancel(message::Endpoint& endpoint, std::uint32_t index, Nanos now);
  void end_now(message::Endpoint& endpoint, std::uint32_t index, message::MessageStatus status, Nanos now);
  void give_waiting(message::Endpoint& endpoint, Nanos now);
  void expire(message::Endpoint& endpoint, Nanos now);
  void wake_resting(message::Endpoint& endpoint, Nanos now);
  void hedge(message::Endpoint& endpoint, Nanos now);
  void finish(message::Endpoint& endpoint, std::uint32_t index, Nanos now);
  void tell(std::uint32_t index, const CallResult& result, Nanos now);
  [[nodiscard]] bool given_up(Nanos now) const;
  [[nodiscard]] Nanos hedge_delay() const;

  CallQueue& queue_;
  ServerPoolSettings settings_;
  PoolServers servers_;
  RetryBudget budget_;
  RecentQuantile latency_;
  Random random_;
  PoolCounters counters_;
  CallObserver* observer_ = nullptr;
  std::vector<Pooled> calls_;
  IndexList::Links links_;
  IndexList waiting_;
  IndexList resting_;
  IndexList hedging_;                      ///< in the order of Pooled::began
  bool room_ = false;                      ///< since the last look at those that wait
  Nanos waiting_until_ = message::kNever;  ///< the first deadline of those that wait
  Nanos resting_until_ = message::kNever;  ///< the first Pooled::due of those that rest
};

}  // namespace warpline::rpc
