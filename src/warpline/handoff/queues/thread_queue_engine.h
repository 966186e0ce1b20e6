// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "warpline/base/give_way.h"
#include "warpline/base/result.h"
#include "warpline/handoff/lanes/host_lane.h"
#include "warpline/handoff/queues/queue_work.h"
#include "warpline/queues/packet_queues.h"

namespace warpline::handoff {

/// `ThreadQueueEngine` is a thread of the host that consumes a queue pair as a persistent kernel does.
template <PacketWork W>
class ThreadQueueEngine {
 public:
  /// It takes up to `most` slots at a time. `queues` outlive it.
  ThreadQueueEngine(queues::PacketQueues& queues, const W& work, std::uint32_t most, LanePlacement placement,
                    std::string name)
      : queues_(queues), work_(work), most_(most), placement_(placement), name_(std::move(name)) {}
  ThreadQueueEngine(const ThreadQueueEngine&) = delete;
  ThreadQueueEngine& operator=(const ThreadQueueEngine&) = delete;
  ~ThreadQueueEngine() { stop(Nanos{0}); }

  [[nodiscard]] Result<void> prepare() { return {}; }

  [[nodiscard]] Result<void> start() {
    counters_.turns.begin();
    WARPLINE_TRY(thread_, start_lane_thread(name_, placement_.cpu, [this] {
                   drain_queue(queues_.view(), most_, work_, counters_, placement_.yield);
                   ended_.store(true, std::memory_order_release);
                 }));
    return {};
  }

  void stop(Nanos timeout) {
    if (!thread_.joinable()) return;
    queues_.view().request_stop(RingStop::drain);
    const std::uint64_t begin = ticks_now();
    const std::uint64_t patience = timeout.value > 0 ? nanos_to_ticks(timeout) : 0;
    while (!ended_.load(std::memory_order_acquire) && ticks_now() - begin < patience) give_way();
    queues_.view().request_stop(RingStop::now);
    thread_.join();
  }

  [[nodiscard]] std::uint32_t lanes() const { return 1; }
  [[nodiscard]] const LaneCounters& counters(std::uint32_t /*lane*/) const { return counters_; }
  [[nodiscard]] std::optional<Error> failure() const { return std::nullopt; }
  template <typename F>
  void for_each_worker_state(F&& f) const {
    f(work_);
  }

 private:
  queues::PacketQueues& queues_;
  W work_;
  std::uint32_t most_;
  LanePlacement placement_;
  std::string name_;
  std::thread thread_;
  std::atomic<bool> ended_{false};
  LaneCounters counters_;
};

}  // namespace warpline::handoff
