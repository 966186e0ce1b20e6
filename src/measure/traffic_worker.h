// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/counter.h"
#include "measure/checker.h"
#include "measure/generator.h"
#include "measure/rate_limiter.h"
#include "measure/traffic.h"

namespace warpline {

/// Of one traffic worker. Written by its lcore, read by any thread.
struct alignas(64) TrafficCounters {
  Counter generated;
  Counter generated_bytes;
  Counter tx;
  Counter tx_bytes;
  Counter rx;
  Counter rx_bytes;
  Counter delivered;  ///< came back good; freed here
  Counter delivered_bytes;
  Counter stalls;   ///< transmit calls that left frames over; those are tried again
  Counter no_mbuf;  ///< turns without a free buffer to generate into
  DropCounters drops;
};

/// What all traffic workers of a run share. Stream numbers are worker numbers; a frame of any stream may come back at
/// any worker.
class TrafficGroup {
 public:
  struct Options {
    std::uint16_t workers = 1;
    MacRule macs = MacRule::either;
    std::uint64_t packets = 0;  ///< to generate by all workers together; 0: no bound
    std::uint64_t warmup = 0;   ///< of all workers together; their latency does not count
    std::uint32_t window = 0;   ///< frames of a stream on their way at most (closed loop); 0: open loop
    std::uint16_t burst = 64;
    Rate rate;  ///< of each worker
    Nanos drain{200'000'000};
  };

  TrafficGroup(TrafficPlan plan, const Options& options);

  [[nodiscard]] const TrafficPlan& plan() const { return plan_; }
  [[nodiscard]] const Options& options() const { return options_; }

  /// Any thread, also from a signal handler: generate no more, wait for what is on its way, then be done.
  void stop() { stop_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool stopped() const { return stop_.load(std::memory_order_relaxed); }

  /// True when every worker is done. What the workers counted and freed before is then visible.
  [[nodiscard]] bool done() const;

  // Sums over all workers; exact once done() is true.

  struct Totals {
    std::uint64_t generated = 0, generated_bytes = 0;
    std::uint64_t tx = 0, tx_bytes = 0;
    std::uint64_t rx = 0, rx_bytes = 0;
    std::uint64_t delivered = 0, delivered_bytes = 0;
    std::uint64_t stalls = 0, no_mbuf = 0;
    std::uint64_t checked = 0, bad = 0, distinct = 0, duplicated = 0, reordered = 0, late = 0;
    std::array<std::uint64_t, kVerdicts> drops{};

    /// Sent and never (in time) come back.
    [[nodiscard]] std::uint64_t missing() const { return tx > distinct ? tx - distinct : 0; }
    /// Made and neither sent nor dropped.
    [[nodiscard]] std::uint64_t unsent() const;
    [[nodiscard]] bool clean() const { return bad == 0 && duplicated == 0 && missing() == 0; }
  };
  [[nodiscard]] Totals totals() const;
  /// Adds every worker's latency histogram to `into`.
  void merge_latency(Histogram& into) const;

 private:
  friend class TrafficWorker;

  /// Of one stream and the worker that makes it.
  struct alignas(64) Member {
    TrafficCounters counters;
    std::unique_ptr<Checker> checker;
    std::atomic<bool> generating{true};
    std::atomic<bool> done{false};
    /// One more than the highest sequence number that came back anywhere. Written by whoever receives: two at once may
    /// set it back for a moment, which only delays the stream.
    alignas(64) std::atomic<std::uint64_t> returned_end{0};
  };

  [[nodiscard]] bool all_stopped_generating() const;

  TrafficPlan plan_;
  Options options_;
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Member>> members_;
};

/// The far side of one queue pair: generates, receives, checks and frees. Owner: one lcore.
class TrafficWorker {
 public:
  struct Place {
    std::uint16_t number;  ///< 0 .. workers-1, each once: also the stream
    std::uint16_t port;
    std::uint16_t queue;
    bool yields = false;  ///< shares its core: gives it up when idle
  };

  TrafficWorker(TrafficGroup& group, const Place& place, rte_mempool& pool);
  ~TrafficWorker();
  TrafficWorker(const TrafficWorker&) = delete;
  TrafficWorker& operator=(const TrafficWorker&) = delete;

  /// Works until the packets are made or the group is stopped, and all that was sent has come back or nothing came for
  /// the drain time.
  void run();

  /// One turn of it: sends a burst if it may, receives a burst. Returns false when there was nothing to do.
  bool poll();
  [[nodiscard]] bool done() const;

 private:
  static constexpr std::uint16_t kMaxTrafficBurst = 512;

  std::uint16_t send(std::uint64_t now);
  std::uint16_t receive(std::uint64_t now);
  [[nodiscard]] std::uint16_t allowance(std::uint64_t now);
  void finish_when_drained(std::uint64_t now);
  void drop_unsent();

  TrafficGroup& group_;
  TrafficGroup::Member& member_;
  Place place_;
  Generator generator_;
  RateLimiter limiter_;
  std::uint64_t limit_;  ///< packets to generate
  std::uint64_t drain_ticks_;
  std::uint64_t progress_ticks_ = 0;  ///< when a frame last went out or came in
  std::uint64_t written_off_ = 0;     ///< sequence numbers below do not hold the closed loop up any more
  std::uint16_t unsent_ = 0;
  std::uint16_t unsent_at_ = 0;  ///< where in mbufs_ they begin
  std::array<rte_mbuf*, kMaxTrafficBurst> mbufs_;
};

}  // namespace warpline
