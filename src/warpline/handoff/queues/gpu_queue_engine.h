// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "warpline/base/time/clock.h"
#include "warpline/gpu/device.h"
#include "warpline/handoff/gpu_attendant.h"
#include "warpline/handoff/lanes/host_lane.h"
#include "warpline/handoff/queues/device_queue_work.h"
#include "warpline/queues/packet_queues.h"

namespace warpline::handoff {

/// `GpuQueueEngine` is a persistent kernel of one CTA that consumes a queue pair, and the host thread beside it, which
/// launches it, sees to it that it makes progress, and touches no packet.
template <PacketWork W>
class GpuQueueEngine {
 public:
  /// `setup` is for the persistent kind, without failover. `queues` outlive the engine.
  GpuQueueEngine(queues::PacketQueues& queues, const W& work, GpuEngineSetup setup)
      : queues_(queues), gpu_(queues, std::move(setup)), work_(work) {
    static_assert(std::is_trivially_copyable_v<W>, "the work travels to the device and back as bytes");
  }
  GpuQueueEngine(const GpuQueueEngine&) = delete;
  GpuQueueEngine& operator=(const GpuQueueEngine&) = delete;
  ~GpuQueueEngine() { stop(Nanos{0}); }

  [[nodiscard]] Result<void> prepare() {
    const std::uint32_t threads = gpu_.threads();
    if constexpr (kKeepsState<W>) states_.assign(threads, work_);
    WARPLINE_CHECK(gpu_.prepare(std::as_bytes(std::span(states_)), [&](unsigned ctas) {
      const DeviceLanes lanes = gpu_.device_lanes();
      return gpu::KernelLaunch(DeviceQueueWork<W>::kernel(), ctas, threads,
                               DeviceQueues{queues_.view(), lanes.counters, lanes.began, lanes.ticks_per_nano}, work_,
                               reinterpret_cast<W*>(gpu_.states()));
    }));
    prepared_ = true;
    return {};
  }

  [[nodiscard]] Result<void> start() {
    if (!prepared_) WARPLINE_CHECK(prepare());
    WARPLINE_CHECK(gpu_.launch());
    WARPLINE_TRY(attendant_, start_lane_thread(gpu_.setup().name, gpu_.setup().attendant.cpu, [this] { attend(); }));
    return {};
  }

  void stop(Nanos timeout) {
    if (!attendant_.joinable()) return;
    if (!end_gpu_thread(queues_.view(), ended_, timeout)) gpu_.call_hung();
    attendant_.join();
  }

  [[nodiscard]] std::uint32_t lanes() const { return 1; }
  [[nodiscard]] const LaneCounters& counters(std::uint32_t lane) const { return gpu_.counters(lane); }
  /// Those of the thread beside the GPU, which has no counters before prepare().
  [[nodiscard]] std::vector<const TurnCount*> attendant_turns() const { return {&gpu_.turns()}; }
  [[nodiscard]] std::optional<Error> failure() const {
    if (!failed_.load(std::memory_order_acquire)) return std::nullopt;
    return failure_;
  }
  template <typename F>
  void for_each_worker_state(F&& f) const {
    for (const W& state : states_) f(state);
  }

 private:
  void attend() {
    failure_ = gpu_.attend();
    if (!failure_ && !states_.empty()) {
      if (const Result<void> fetched = gpu_.fetch_states(std::as_writable_bytes(std::span(states_))); !fetched) {
        failure_ = fetched.error();
      }
    }
    if (failure_) {
      gpu::abandon_gpus();
      failed_.store(true, std::memory_order_release);
    }
    ended_.store(true, std::memory_order_release);
  }

  queues::PacketQueues& queues_;
  GpuAttendant gpu_;
  W work_;
  std::vector<W> states_;  ///< the device's, before start() and after stop()
  bool prepared_ = false;
  std::thread attendant_;
  std::optional<Error> failure_;  ///< the attendant writes it before failed_
  std::atomic<bool> failed_{false};
  std::atomic<bool> ended_{false};
};

}  // namespace warpline::handoff
