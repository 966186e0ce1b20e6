// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "warpline/base/kinds.h"
#include "warpline/memory/pool_settings.h"
#include "warpline/stream/lanes/segment_lane.h"

namespace warpline::stream_port {

/// How a lane on a GPU is made.
struct GpuLaneSetup {
  EngineKind engine = EngineKind::persistent;             ///< a kernel that stays, or a launch a burst
  int gpu = 0;                                            ///< CUDA ordinal
  memory::MemoryKind rings = memory::MemoryKind::device;  ///< where the rings are: pinned or device
};

/// Returns a lane on a GPU: one CTA. Frames are read where they lie, which must be where the GPU reaches; what it
/// shares with the receiver is in pinned memory. All lanes of a GPU are to be made before the first of them starts:
/// memory cannot be had beside kernels that stay. Errors: usage, for an engine or rings of another kind, and rings that
/// are no whole pages of the GPU; environment, if there is no GPU, or no room.
[[nodiscard]] Result<std::unique_ptr<stream::SegmentLane>> make_gpu_stream_lane(const stream::LaneShape& shape,
                                                                                const GpuLaneSetup& setup);

}  // namespace warpline::stream_port
