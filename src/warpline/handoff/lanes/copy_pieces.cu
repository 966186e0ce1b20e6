// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "warpline/handoff/device_work.cuh"
#include "warpline/handoff/lanes/copy_by_warp.cuh"
#include "warpline/handoff/lanes/copy_pieces.h"

namespace warpline::handoff {
namespace {

/// Descriptors that a CTA holds at a time: two a copy.
constexpr unsigned kDescriptors = 256;

}  // namespace

/// With a warp a copy: the descriptors come over PCIe once, all at a time.
__device__ BurstCounts work_burst_together(BurstView burst, CopyPieces& /*work*/) {
  __shared__ Segment held[kDescriptors];
  const unsigned warps = blockDim.x / kWarp;
  for (unsigned begin = 0; begin < burst.count; begin += kDescriptors) {
    const unsigned here = min(burst.count - begin, kDescriptors);
    for (unsigned i = threadIdx.x; i < here; i += blockDim.x) held[i] = burst.segments[begin + i];
    __syncthreads();
    for (unsigned copy = threadIdx.x / kWarp; copy < here / 2; copy += warps) {
      copy_by_warp(held[copy * 2].data, held[copy * 2 + 1].data, held[copy * 2].length, threadIdx.x % kWarp);
    }
    __syncthreads();
  }
  return {.worked = static_cast<std::uint16_t>(burst.count / 2), .exceptions = 0};
}

}  // namespace warpline::handoff

WARPLINE_DEVICE_WORK(warpline::handoff::CopyPieces);
