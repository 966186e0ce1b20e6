// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "warpline/packet/responder.h"
#include "warpline/port/announce/announce.h"
#include "warpline/traffic/completion_watch.h"
#include "warpline/traffic/generator.h"
#include "warpline/traffic/quiet_time.h"
#include "warpline/traffic/rate_limiter.h"
#include "warpline/traffic/traffic_group.h"

namespace warpline::traffic {

/// The far side of one queue pair: generates, receives, checks and frees. Owner: one lcore.
class TrafficWorker {
 public:
  struct Place {
    std::uint16_t number;  ///< 0 .. workers-1, each once: also the stream
    std::uint16_t port;
    std::uint16_t queue;
    bool yields = false;  ///< shares its core: gives it up when idle
    /// Set: answers for the port's address, also where the worker checks nothing. It outlives the worker.
    const packet::Responder* responder = nullptr;
    port::Announcer* announcer = nullptr;  ///< set: has frames that the worker sends
  };

  TrafficWorker(TrafficGroup& group, const Place& place, rte_mempool& pool);
  ~TrafficWorker();
  TrafficWorker(const TrafficWorker&) = delete;
  TrafficWorker& operator=(const TrafficWorker&) = delete;

  /// Works until the packets are made (or, where nothing is sent, have come) or the group is stopped, and all that was
  /// sent has left and come back or nothing came for the drain time.
  void run();

  /// One turn of it: sends a burst if it may, receives a burst. Returns false when there was nothing to do.
  bool poll();
  [[nodiscard]] bool done() const;

 private:
  static constexpr std::uint16_t kMaxTrafficBurst = 512;

  std::uint16_t send(std::uint64_t now);
  std::uint16_t receive(std::uint64_t now);
  /// Returns whether the packet asked for an answer of the port's address, and now is that.
  [[nodiscard]] bool is_reply(rte_mbuf* mbuf) const;
  void send_replies(rte_mbuf** mbufs, std::uint16_t count);
  /// How many frames limit, closed loop and rate let it make now.
  [[nodiscard]] std::uint16_t allowance(std::uint64_t now);
  /// By the rate in force.
  [[nodiscard]] RateLimiter make_limiter() const;
  /// Frames of the stream made and not come back.
  [[nodiscard]] std::uint64_t on_their_way() const;
  /// Whether frames got to an end elsewhere since it was last asked.
  [[nodiscard]] bool more_arrived();
  /// Where the last of what was sent is: until nothing more will be known.
  void watch_completion(std::uint64_t now);
  void finish();
  /// After a turn without progress: gives up on what does not move any more.
  void wait_for_the_rest(std::uint64_t now);

  TrafficGroup& group_;
  TrafficGroup::Member& member_;
  Place place_;
  std::uint16_t burst_;
  Generator generator_;
  Rate rate_;  ///< that limiter_ goes by
  RateLimiter limiter_;
  std::uint64_t limit_;  ///< frames to generate
  std::uint64_t drain_ticks_;
  std::uint64_t interrupted_drain_ticks_;
  CompletionWatch watch_;
  bool left_ = false;  ///< nothing more will be known
  bool generating_ = true;
  TurnWatch passed_;
  QuietTime quiet_;                ///< since a frame last went out or came back good
  std::uint64_t arrived_ = 0;      ///< frames that had got to an end elsewhere, when last asked
  std::uint64_t written_off_ = 0;  ///< frames that do not hold the closed loop up any more
  std::uint16_t unsent_ = 0;
  std::uint16_t unsent_at_ = 0;  ///< where in unsent_mbufs_ they begin
  std::uint64_t unsent_bytes_ = 0;
  std::array<rte_mbuf*, kMaxTrafficBurst> unsent_mbufs_;
};

}  // namespace warpline::traffic
