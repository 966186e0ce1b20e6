// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/cuda_error.h"
#include "warpline/stream_port/gpu_lane.h"

namespace warpline::stream_port {

Result<std::unique_ptr<stream::SegmentLane>> make_gpu_stream_lane(const stream::LaneShape&, const GpuLaneSetup&) {
  return gpu::built_without_cuda("a lane of streams");
}

}  // namespace warpline::stream_port
