// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "warpline/base/kinds.h"
#include "warpline/base/result.h"
#include "warpline/base/statistics/turn_count.h"
#include "warpline/base/units.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/gpu_place.h"
#include "warpline/gpu/kernel_launch.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/gpu/memory/host_registration.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/handoff/burst_ring.h"
#include "warpline/handoff/device_work.h"
#include "warpline/handoff/lanes/host_lane.h"
#include "warpline/handoff/next_launcher.h"
#include "warpline/queues/packet_queues.h"

namespace warpline::handoff {

struct GpuEngineSetup {
  EngineKind kind = EngineKind::persistent;  ///< launch, graph or persistent
  int gpu = 0;
  std::uint32_t ctas = 16;   ///< CTAs of a persistent kernel, each with a burst in hand
  std::uint16_t burst = 64;  ///< packets at most: what a CTA has threads for, as far as `threads` go
  std::uint32_t threads = 256;
  Nanos deadline{20'000};  ///< graph: longest wait for bursts to fill one
  Nanos watchdog{1'000'000'000};
  bool failover = false;      ///< a host thread works on when the GPU fails
  LanePlacement attendant{};  ///< the host thread that launches and watches
  std::string name = "gpu";
  /// Ready words in GPU memory, one per slot, if what a burst holds arrives behind publish(): kernels wait for these.
  /// Null: the ring's own.
  RingWord* ready = nullptr;
  /// Bytes from where the descriptors say that packets are, in GPU memory, to where they lie, in pinned memory: a CTA
  /// copies them before it works on them. A burst's packets lie one behind the other, from multiples of 16 on.
  /// 0: they are there.
  std::ptrdiff_t pull = 0;
};

/// The memory that the kernels of one engine share with the host, and the host thread that launches them and sees to it
/// that they make progress. Owner: the engine; prepare() and launch() by who sets it up, attend() on its own thread.
///
/// prepare() makes every call to CUDA that may wait for kernels that run: memory, streams, graphs. Beside persistent
/// kernels such a call can wait for ever; an H200 did so at about the 32nd stream and when many graphs were
/// instantiated. So all engines on a GPU prepare first, then launch.
class GpuAttendant {
 public:
  /// For the kernels of a burst ring, which outlives this.
  GpuAttendant(const BurstRing& ring, GpuEngineSetup setup);
  /// For the persistent kernel that consumes a pair of queues, which outlive this.
  GpuAttendant(const queues::PacketQueues& queues, GpuEngineSetup setup);

  /// The slots of the ring, each a lane of a launch engine; CTAs of a persistent kernel never outnumber them. One of
  /// packet queues.
  [[nodiscard]] std::uint32_t lanes() const {
    return setup_.kind == EngineKind::persistent ? std::min(setup_.ctas, work_.lanes) : work_.lanes;
  }
  /// Returns how many bursts are worked on side by side; 1 where launches decide that.
  [[nodiscard]] std::uint32_t batches_at_once() const { return setup_.kind == EngineKind::persistent ? lanes() : 1; }
  /// Threads of a CTA: one a packet, in whole warps.
  [[nodiscard]] std::uint32_t threads() const;

  /// Opens the ring or the queues to the GPU, puts `states` there and makes the engine's kernels ready:
  /// `kernel_of(ctas)` is one of so many CTAs. An environment error when the GPU has no room for all kernels that are
  /// to run at a time.
  [[nodiscard]] Result<void> prepare(std::span<const std::byte> states,
                                     const std::function<gpu::KernelLaunch(unsigned)>& kernel_of);
  /// For `kernel_of`, as the following two. Of packet queues it has no view.
  [[nodiscard]] DeviceLanes device_lanes() const;
  [[nodiscard]] std::byte* states() const { return states_->data(); }
  /// Returns the counter in GPU memory for DeviceWork::next_kernel: the sequence of the next burst.
  [[nodiscard]] std::uint64_t* next() const { return reinterpret_cast<std::uint64_t*>(next_->data()); }
  /// Launches a persistent kernel and waits until all its CTAs run; the other engines launch as bursts come. After
  /// prepare() of all engines, in the order of that.
  [[nodiscard]] Result<void> launch();

  /// Until the stop word says otherwise and the kernels have ended, or the GPU fails: then, why.
  [[nodiscard]] std::optional<Error> attend();
  /// Any thread: the kernels were told to stop and did not, which attend() is to report.
  void call_hung() { called_hung_.store(true, std::memory_order_relaxed); }
  /// After attend(), if nothing failed.
  [[nodiscard]] Result<void> fetch_states(std::span<std::byte> states);
  /// After attend() has failed: a kernel may still be running, and may write to packets that it has in hand.
  [[nodiscard]] bool hangs() const { return hangs_; }

  /// Those of attend().
  [[nodiscard]] const TurnCount& turns() const { return turns_; }
  /// After prepare().
  [[nodiscard]] const LaneCounters& counters(std::uint32_t lane) const { return lane_counters()[lane]; }
  [[nodiscard]] const GpuEngineSetup& setup() const { return setup_; }

 private:
  [[nodiscard]] gpu::CudaStream::State query() const { return launcher_ ? launcher_->query() : stream_->query(); }
  [[nodiscard]] std::uint32_t* began() const { return reinterpret_cast<std::uint32_t*>(began_->data()); }
  [[nodiscard]] Result<void> await_ctas();
  [[nodiscard]] std::optional<Error> watch_and_launch();
  [[nodiscard]] LaneCounters* lane_counters() const { return reinterpret_cast<LaneCounters*>(counters_->data()); }
  [[nodiscard]] Error fault() const;
  [[nodiscard]] Error hang();

  /// What the kernels work on, in memory that they share with the host.
  struct AttendedWork {
    StopView stop;
    std::span<std::byte> region;
    std::uint32_t lanes;
    std::function<bool(std::uint64_t now)> stalled;  ///< as of ProgressWatch
  };

  AttendedWork work_;
  const BurstRing* ring_ = nullptr;  ///< null: packet queues
  GpuEngineSetup setup_;
  std::optional<gpu::GpuPlace> place_;
  std::optional<gpu::HostRegistration> ring_registration_;
  std::optional<gpu::PinnedBuffer> counters_;
  std::optional<gpu::PinnedBuffer> began_;
  std::optional<gpu::DeviceBuffer> kept_;
  std::optional<gpu::DeviceBuffer> states_;
  std::optional<gpu::DeviceBuffer> next_;
  std::optional<gpu::CudaStream> stream_;
  std::optional<gpu::KernelLaunch> persistent_;  ///< the kernel of a persistent engine
  std::optional<NextLauncher> launcher_;         ///< launcher of the launch and graph engines
  TurnCount turns_;
  std::atomic<bool> called_hung_{false};
  bool hangs_ = false;
};

}  // namespace warpline::handoff
