// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "warpline/base/result.h"
#include "warpline/gpu/kernel_launch.h"

namespace warpline::gpu {

/// A GPU runs at most so many kernels at a time (CUDA C++ Programming Guide, technical specifications per compute
/// capability: resident grids, 128 from 7.0 on). An H200 was seen to begin no 129th.
inline constexpr std::uint32_t kResidentGrids = 128;

/// What a kernel occupies of a GPU while it runs.
struct KernelDemand {
  const void* kernel = nullptr;               ///< the __global__ function: CTAs of one fill a multiprocessor exactly
  std::uint32_t ctas = 1;                     ///< that have to run at the same time
  std::uint32_t ctas_per_multiprocessor = 1;  ///< of this kernel alone, at most: its registers, threads, shared memory
};

/// Place on one GPU for a kernel that others wait for while it runs: a persistent one with all its CTAs, or one that is
/// launched again and again, with one CTA. A kernel that found no place would wait for a persistent one to end, so the
/// places of a process are worked out before any of its kernels starts, however the GPU may spread CTAs over its
/// multiprocessors. Kernels start in the order of their claims. Kernels of other processes take turns with ours and
/// need no place. Given back when destroyed. Any thread.
class GpuPlace {
 public:
  /// An environment error when the kernel might find no place beside those that have claimed theirs. `gpu` is the
  /// calling thread's.
  [[nodiscard]] static Result<GpuPlace> claim(int gpu, const KernelLaunch& kernel, std::uint32_t ctas);
  /// The same on a GPU of so many multiprocessors.
  [[nodiscard]] static Result<GpuPlace> claim(int gpu, std::uint32_t multiprocessors, KernelDemand demand);

 private:
  struct Release {
    int gpu;
    void operator()(KernelDemand* demand) const;
  };
  GpuPlace(int gpu, KernelDemand* demand) : demand_(demand, Release{gpu}) {}

  std::unique_ptr<KernelDemand, Release> demand_;
};

}  // namespace warpline::gpu
