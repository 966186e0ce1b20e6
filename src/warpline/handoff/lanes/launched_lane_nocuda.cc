// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/cuda_error.h"
#include "warpline/handoff/lanes/launched_lane.h"

namespace warpline::handoff {

Result<std::unique_ptr<LaunchedLane>> make_launched_lane(int) {
  return gpu::built_without_cuda("messages in GPU memory");
}

}  // namespace warpline::handoff
