// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "warpline/base/units.h"
#include "warpline/gpu/device.h"
#include "warpline/handoff/burst_ring.h"
#include "warpline/handoff/device_work.h"
#include "warpline/handoff/engine.h"
#include "warpline/handoff/gpu_attendant.h"
#include "warpline/handoff/lanes/host_lane.h"

namespace warpline::handoff {

/// Lanes on a GPU, and with failover one more on the host, for when the GPU fails: bursts that the GPU may have in hand
/// then come back as engine_stopped, since they may be half done, or, of a kernel that hangs and may yet write to them,
/// as engine_hung; the host works on those that follow.
template <PacketWork W>
class GpuEngine {
 public:
  GpuEngine(BurstRing& ring, const W& work, GpuEngineSetup setup)
      : ring_(ring), gpu_(ring, std::move(setup)), host_work_(work) {
    static_assert(std::is_trivially_copyable_v<W>, "the work travels to the device and back as bytes");
  }
  GpuEngine(const GpuEngine&) = delete;
  GpuEngine& operator=(const GpuEngine&) = delete;
  ~GpuEngine() { stop(Nanos{0}); }

  [[nodiscard]] Result<void> prepare() {
    const std::uint32_t threads = gpu_.threads();
    if constexpr (kKeepsState<W>) states_.assign(std::size_t{gpu_.lanes()} * threads, host_work_);
    WARPLINE_CHECK(gpu_.prepare(std::as_bytes(std::span(states_)), [&](unsigned ctas) {
      auto* const states = reinterpret_cast<W*>(gpu_.states());
      if (gpu_.setup().kind == EngineKind::persistent) {
        return gpu::KernelLaunch(DeviceWork<W>::persistent_kernel(), ctas, threads, gpu_.device_lanes(), host_work_,
                                 states);
      }
      return gpu::KernelLaunch(DeviceWork<W>::next_kernel(), ctas, threads, gpu_.device_lanes(), host_work_, states,
                               gpu_.next());
    }));
    prepared_ = true;
    return {};
  }

  [[nodiscard]] Result<void> start() {
    if (!prepared_) WARPLINE_CHECK(prepare());
    WARPLINE_CHECK(gpu_.launch());
    WARPLINE_TRY(attendant_,
                 start_lane_thread(gpu_.setup().name, gpu_.setup().attendant.cpu, [this] { run_attendant(); }));
    return {};
  }

  void on_published() {}

  EngineLeft stop(Nanos timeout) {
    if (attendant_.joinable()) {
      if (!end_gpu_thread(ring_.engine_view(), ended_, timeout)) gpu_.call_hung();
      attendant_.join();
    }
    return {ring_.undone()};
  }

  [[nodiscard]] std::string_view name() const { return warpline::name(gpu_.setup().kind); }
  /// The last one is the host's.
  [[nodiscard]] std::uint32_t lanes() const { return gpu_.lanes() + 1; }
  [[nodiscard]] std::uint32_t batches_at_once() const { return gpu_.batches_at_once(); }
  [[nodiscard]] const LaneCounters& counters(std::uint32_t lane) const {
    return lane < gpu_.lanes() ? gpu_.counters(lane) : host_counters_;
  }
  /// Those of the threads beside the GPU: lanes of it have none, nor counters before prepare().
  [[nodiscard]] std::vector<const TurnCount*> attendant_turns() const { return {&gpu_.turns(), &host_counters_.turns}; }
  [[nodiscard]] std::optional<Error> failure() const {
    if (!failed_.load(std::memory_order_acquire)) return std::nullopt;
    return failure_;
  }
  template <typename F>
  void for_each_worker_state(F&& f) const {
    for (const W& state : states_) f(state);
    f(host_work_);
  }

 private:
  void run_attendant() {
    failure_ = gpu_.attend();
    if (!failure_ && !states_.empty()) {
      if (const Result<void> fetched = gpu_.fetch_states(std::as_writable_bytes(std::span(states_))); !fetched) {
        failure_ = fetched.error();
      }
    }
    if (failure_) {
      gpu::abandon_gpus();
      failed_.store(true, std::memory_order_release);
      if (gpu_.setup().failover) work_in_its_stead();
    }
    ended_.store(true, std::memory_order_release);
  }

  /// Until the producer has moved over, what it publishes is lost with the rest.
  void work_in_its_stead() {
    const Verdict lost = gpu_.hangs() ? Verdict::engine_hung : Verdict::engine_stopped;
    const EngineView& abandoned = ring_.engine_view();
    const EngineView& view = ring_.renew();
    for (bool last = false; !last;) {
      last = ring_.renewed_from() != UINT64_MAX || view.stop_requested() != RingStop::none;
      const std::uint64_t published = abandoned.first_sequence + ring_.published();
      fail_undone(abandoned, std::min(ring_.renewed_from(), published), lost);
      lane_idle(true);
    }
    if (const std::uint64_t first = ring_.renewed_from(); first != UINT64_MAX) {
      drain_ring(view, {first, 1}, host_work_, host_counters_, true);
    }
  }

  BurstRing& ring_;
  GpuAttendant gpu_;
  W host_work_;
  LaneCounters host_counters_;
  std::vector<W> states_;  ///< the device's, before start() and after stop()
  bool prepared_ = false;
  std::thread attendant_;
  std::optional<Error> failure_;  ///< the attendant writes it before failed_
  std::atomic<bool> failed_{false};
  std::atomic<bool> ended_{false};
};

}  // namespace warpline::handoff
