// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "warpline/base/kinds.h"
#include "warpline/base/result.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/kernel_launch.h"
#include "warpline/handoff/ring_layout.h"

namespace warpline::handoff {

/// Launches kernels whose CTAs each take the next burst, as bursts are published: of the launch engine one for each, of
/// the graph engine one for eight, or for fewer when the GPU is idle or the first has waited for the deadline. One
/// thread.
class NextLauncher {
 public:
  static constexpr unsigned kGraphBursts = 8;
  /// Kernels on one stream follow each other, and each spends its time waiting for PCIe.
  static constexpr unsigned kStreams = 4;

  /// `kernel_of(ctas)` is the kernel for so many bursts. On the calling thread's GPU.
  [[nodiscard]] static Result<NextLauncher> create(EngineKind kind, const EngineView& view,
                                                   std::uint64_t deadline_ticks,
                                                   const std::function<gpu::KernelLaunch(unsigned)>& kernel_of);

  /// `published` bursts so far; `hurry`: there will be no more. Returns whether CUDA took the launches.
  [[nodiscard]] bool launch(std::uint64_t published, std::uint64_t now, bool hurry);
  /// failed if one of the streams is, idle if all are.
  [[nodiscard]] gpu::CudaStream::State query() const;
  [[nodiscard]] std::optional<Error> failure() const;

 private:
  NextLauncher(const EngineView& view, std::uint64_t deadline_ticks) : view_(view), deadline_(deadline_ticks) {}

  [[nodiscard]] bool launch_graph(std::uint64_t bursts);
  [[nodiscard]] bool last_is_done() const;
  [[nodiscard]] unsigned next_turn() { return turn_++ % kStreams; }

  EngineView view_;
  std::uint64_t deadline_;
  std::vector<gpu::CudaStream> streams_;
  std::vector<gpu::KernelLaunch> single_;  ///< kernel of the launch engine; else empty
  /// Graphs of the graph engine, one set per stream because a graph never runs beside itself: graphs_[stream][n - 1]
  /// is for n bursts.
  std::vector<std::vector<gpu::LaunchGraph>> graphs_;
  std::uint64_t launched_ = 0;
  std::uint64_t waiting_since_ = 0;  ///< ticks; 0: nothing waits
  unsigned turn_ = 0;
};

}  // namespace warpline::handoff
