// SPDX-License-Identifier: Apache-2.0
// Makes nvcc compile every workload that is the same on host and device, so that none comes to use what a device lacks.
// Nothing launches these kernels.
#include "workload/checksum.h"
#include "workload/count.h"
#include "workload/frame_limits.h"
#include "workload/mac_swap.h"
#include "workload/none.h"

namespace warpline {

template <typename Work>
__global__ void work_on_each(Segment* frames, Work work) {
  Segment& first = frames[threadIdx.x];
  first.verdict = work(frame_at(&first));
}

template __global__ void work_on_each(Segment*, NoWork);
template __global__ void work_on_each(Segment*, FrameLimits<MacSwap>);
template __global__ void work_on_each(Segment*, FrameLimits<Count>);
template __global__ void work_on_each(Segment*, FrameLimits<ChecksumVerify>);

}  // namespace warpline
