// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/handoff/ring_layout.h"

namespace warpline::handoff::testing {

inline constexpr std::size_t kMillion = 15625 * 64;

/// Work whose lanes, on host and device, are broken: they pass over the frame that begins at `victim`.
struct SkipOne {
  static constexpr bool kStateless = true;

  std::uint8_t* victim;

  WARPLINE_HD Verdict operator()(FrameRef frame) const {
    ++*frame.data();
    return Verdict::forward;
  }
};

/// In place of the lane's own loop, on frames of one piece.
inline BurstCounts work_burst(BurstView burst, SkipOne& work) {
  BurstCounts counts;
  for (std::uint16_t i = 0; i < burst.count; ++i) {
    if (burst.segments[i].data == work.victim) continue;
    work(FrameRef{burst.segments + i, 1, burst.segments[i].length});
    ++counts.worked;
  }
  return counts;
}

#if defined(__CUDACC__)
/// The same by all threads of a CTA.
__device__ inline BurstCounts work_burst_together(BurstView burst, SkipOne& work) {
  BurstCounts counts;
  for (unsigned begin = 0; begin < burst.count; begin += blockDim.x) {
    const unsigned i = begin + threadIdx.x;
    bool worked = false;
    if (i < burst.count && burst.segments[i].data != work.victim) {
      work(FrameRef{burst.segments + i, 1, burst.segments[i].length});
      worked = true;
    }
    counts.worked = static_cast<std::uint16_t>(counts.worked + __syncthreads_count(worked));
  }
  return counts;
}
#endif

}  // namespace warpline::handoff::testing
