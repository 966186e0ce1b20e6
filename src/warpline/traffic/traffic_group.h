// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/statistics/histogram.h"
#include "warpline/base/statistics/turn_count.h"
#include "warpline/base/units.h"
#include "warpline/traffic/checker.h"
#include "warpline/traffic/queue_totals.h"
#include "warpline/traffic/shared_rate.h"
#include "warpline/traffic/traffic.h"

namespace warpline::traffic {

/// Counters of one traffic worker. Written by its lcore, read by any thread.
struct alignas(64) TrafficCounters {
  Counter generated;
  Counter generated_bytes;
  Counter tx;
  Counter tx_bytes;
  Counter rx;
  Counter rx_bytes;
  Counter delivered;  ///< came back good; freed here
  Counter delivered_bytes;
  Counter replies;  ///< received as requests for the port's address, and sent back as the answer
  Counter reply_bytes;
  Counter replies_unsent;  ///< dropped, since the transmit queue was full
  Counter stalls;          ///< transmit calls that left frames over; those are tried again
  Counter no_mbuf;         ///< turns without a free buffer to generate into
  DropCounters drops;
};

/// What all traffic workers of a run share. Stream numbers are worker numbers; a frame of any stream may come back at
/// any worker.
class TrafficGroup {
 public:
  struct Options {
    std::uint16_t workers = 1;
    MacRule macs = MacRule::either;
    std::uint64_t packets = 0;  ///< to generate, or where nothing is sent to receive, by all together; 0: no bound
    std::uint64_t warmup = 0;   ///< packets of all workers together; their latency does not count
    bool sends = true;
    bool receives = true;  ///< without sending: until `packets` came, or stop(). False: its ports' frames are others'
    std::uint32_t window = 0;  ///< frames of a stream on their way at most (closed loop); 0: open loop
    /// Where frames do not come back here: how many of all streams have got to their end, lost ones not counted. Closes
    /// the loop, and ends the drain. Any thread.
    std::function<std::uint64_t()> arrived = {};
    /// Turns of the threads that frames pass on their way back, as far as this process has them: nothing that comes
    /// back counts as silence only while each of them has its turns. They outlive the workers.
    std::vector<const TurnCount*> passed = {};
    std::uint16_t burst = 64;
    Rate rate{};  ///< rate of each worker, unless set_rate() says another
    Nanos drain{200'000'000};
    Nanos interrupted_drain{500'000'000};  ///< takes the place of `drain` after interrupt(), if it is shorter
  };

  TrafficGroup(TrafficPlan plan, const Options& options);

  [[nodiscard]] const TrafficPlan& plan() const { return plan_; }
  [[nodiscard]] const Options& options() const { return options_; }

  /// Any thread: each worker's rate is this one from now on.
  void set_rate(const Rate& rate) { rate_.store(rate); }
  [[nodiscard]] const SharedRate& rate() const { return rate_; }

  /// Any thread, also from a signal handler: generate no more, wait for what is on its way, then be done.
  void stop() { stop_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool stopped() const { return stop_.load(std::memory_order_relaxed); }
  /// The same for somebody who waits for the end: the drain is Options::interrupted_drain at most.
  void interrupt() {
    interrupted_.store(true, std::memory_order_relaxed);
    stop();
  }

  /// True when every worker is done. What the workers counted and freed before is then visible.
  [[nodiscard]] bool done() const;

  // Sums over all workers; exact once done() is true.

  struct Totals {
    Tally generated;
    Tally tx;
    Tally rx;
    Tally delivered;  ///< came back good
    Tally replies;    ///< answers to ARP, neighbour discovery and echo; not in `tx`
    std::uint64_t stalls = 0;
    std::uint64_t no_mbuf = 0;  ///< turns
    DropTotals drops{};
    VerifyTotals verify;       ///< missing: sent, or overtaken, and never (in time) come back
    std::uint64_t unsent = 0;  ///< made and neither sent nor dropped
  };
  [[nodiscard]] Totals totals() const;
  /// Adds them, but for the latency, to those of the ports' other side.
  void add_to(RunTotals& totals) const;
  /// What went through so far, at little cost: what was sent or, where nothing is, what came good.
  [[nodiscard]] Tally through() const;
  /// What a worker's queue pair did; once done() is true.
  [[nodiscard]] QueueTotals queue_totals(std::uint16_t worker) const;
  /// Adds every worker's latency histogram to `into`.
  void merge_latency(Histogram& into) const;

 private:
  friend class TrafficWorker;

  /// Ticks from before the first burst to behind the last; 0 if there was none.
  struct Span {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;

    void extend(std::uint64_t from, std::uint64_t to) {
      if (begin == 0) begin = from;
      end = to;
    }
  };

  /// State of one stream and the worker that generates it.
  struct alignas(64) Member {
    TrafficCounters counters;
    std::unique_ptr<Checker> checker;
    std::atomic<bool> sending{true};  ///< generating, or still holding frames
    std::atomic<bool> done{false};
    /// Frames of the stream that came back, one count for each worker that receives: RSS spreads a stream over all. A
    /// count, not the highest sequence number, since queues may be behind each other by any number of frames.
    std::vector<std::atomic<std::uint64_t>> returned;
    // Written by the worker before it is done, read by others after.
    Span tx;
    Span rx;
    std::uint64_t left = 0;  ///< ticks at which the device's last report was seen; 0: none
    std::uint32_t unreported = 0;
    std::vector<std::uint64_t> ends;  ///< one more than the highest sequence number of each stream that came here
  };

  [[nodiscard]] std::uint64_t packets_of(std::uint16_t worker) const;
  [[nodiscard]] bool sending() const;
  [[nodiscard]] bool all_came_back() const;
  /// Nothing is sent, and as many as there should be have come.
  [[nodiscard]] bool received_enough() const;
  /// Frames that later ones of their streams have overtaken, and that never came; once done.
  [[nodiscard]] std::uint64_t overtaken() const;
  void note_returned(std::uint16_t worker);
  [[nodiscard]] std::uint64_t returned_of(std::uint16_t stream) const;
  /// Frames made and not arrived, an equal share of each stream: nobody knows whose they are.
  [[nodiscard]] std::uint64_t share_on_the_way() const;

  TrafficPlan plan_;
  Options options_;
  SharedRate rate_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> interrupted_{false};
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace warpline::traffic
