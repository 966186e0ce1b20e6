// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "warpline/base/piece_lane.h"
#include "warpline/base/result.h"

struct CUstream_st;

namespace warpline::handoff {

/// Copies by kernels that end, each of all pieces that wait: for processes in which others use the GPU, too, and wait
/// for all that runs there. It reaches the GPU's own memory, and host memory that is pinned. All calls are by one
/// thread, which has called gpu::use_gpu() for that GPU; a launch, in landed(), takes it microseconds.
class LaunchedLane : public PieceLane {
 public:
  /// Returns the stream that it launches on. Whoever hands it a piece may have it wait for what fills that piece.
  [[nodiscard]] virtual CUstream_st* stream() const = 0;
};

/// Makes a lane on that GPU. Environment error: there is none, or its driver is too old.
[[nodiscard]] Result<std::unique_ptr<LaunchedLane>> make_launched_lane(int gpu);

}  // namespace warpline::handoff
