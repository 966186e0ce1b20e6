// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/base/give_way.h"
#include "warpline/handoff/burst_ring.h"
#include "warpline/handoff/engine.h"
#include "warpline/handoff/lanes/host_lane.h"

namespace warpline::handoff {

/// Host threads that drain a burst ring as the lanes of a persistent kernel do.
template <PacketWork W>
class ThreadEngine {
 public:
  /// One lane for each placement, at least one. Threads are named "`name`/0", "`name`/1", ...
  ThreadEngine(const BurstRing& ring, const W& work, const std::vector<LanePlacement>& placements, std::string name)
      : ring_(ring), name_(std::move(name)) {
    for (const LanePlacement& placement : placements) lanes_.push_back(std::make_unique<Lane>(placement, work));
  }
  ThreadEngine(const ThreadEngine&) = delete;
  ThreadEngine& operator=(const ThreadEngine&) = delete;
  ~ThreadEngine() { stop(Nanos{0}); }

  [[nodiscard]] Result<void> prepare() { return {}; }

  [[nodiscard]] Result<void> start() {
    for (std::uint32_t i = 0; i < lanes(); ++i) {
      Lane& lane = *lanes_[i];
      lane.running.store(true, std::memory_order_relaxed);
      lane.counters.turns.begin();
      Result<std::thread> thread =
          start_lane_thread(name_ + "/" + std::to_string(i), lane.placement.cpu, [this, i] { drain(i); });
      if (!thread) {
        lane.running.store(false, std::memory_order_relaxed);
        lane.counters.turns.end();
        stop(Nanos{0});
        return std::move(thread).error();
      }
      lane.thread = *std::move(thread);
    }
    return {};
  }

  void on_published() {}

  EngineLeft stop(Nanos timeout) {
    const EngineView& view = ring_.engine_view();
    view.request_stop(RingStop::drain);
    const std::uint64_t begin = ticks_now();
    const std::uint64_t patience = timeout.value > 0 ? nanos_to_ticks(timeout) : 0;
    while (any_running() && ticks_now() - begin < patience) give_way();
    view.request_stop(RingStop::now);
    std::uint64_t bursts = 0;
    for (const auto& lane : lanes_) {
      if (lane->thread.joinable()) lane->thread.join();
      bursts += lane->counters.bursts.get();
    }
    return {ring_.published() - bursts};
  }

  [[nodiscard]] std::string_view name() const { return "thread"; }
  [[nodiscard]] std::uint32_t lanes() const { return static_cast<std::uint32_t>(lanes_.size()); }
  [[nodiscard]] std::uint32_t batches_at_once() const { return lanes(); }
  [[nodiscard]] const LaneCounters& counters(std::uint32_t lane) const { return lanes_[lane]->counters; }
  [[nodiscard]] std::optional<Error> failure() const { return std::nullopt; }
  template <typename F>
  void for_each_worker_state(F&& f) const {
    for (const auto& lane : lanes_) f(std::as_const(lane->work));
  }

 private:
  struct alignas(kRingLine) Lane {
    Lane(const LanePlacement& where, const W& prototype) : placement(where), work(prototype) {}
    LanePlacement placement;
    W work;
    std::thread thread;
    std::atomic<bool> running{false};
    LaneCounters counters;
  };

  [[nodiscard]] bool any_running() const {
    for (const auto& lane : lanes_) {
      if (lane->running.load(std::memory_order_acquire)) return true;
    }
    return false;
  }

  /// The whole life of lane `index`, on its thread.
  void drain(std::uint32_t index) {
    Lane& lane = *lanes_[index];
    const EngineView& view = ring_.engine_view();
    drain_ring(view, {view.first_sequence + index, lanes()}, lane.work, lane.counters, lane.placement.yield);
    lane.running.store(false, std::memory_order_release);
  }

  const BurstRing& ring_;
  std::string name_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace warpline::handoff
