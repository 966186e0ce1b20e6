// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/flow/frame_plan.h"
#include "warpline/ingest/frames/frame_consumer.h"

namespace warpline::ingest {

/// Loads the kernel: beside one that runs CUDA might wait with that. False when CUDA refuses.
[[nodiscard]] bool load_frame_sum();

/// Puts on the frame's stream: a kernel that waits until `*gate`, which host and GPU see, is not 0, and then adds the
/// frame's sum, as frame_sum.h has it, to `*sum` in GPU memory. False when CUDA refuses.
[[nodiscard]] bool queue_frame_sum(const ReadyFrame& ready, const flow::FramePlan& plan, std::uint64_t* gate,
                                   std::uint64_t* sum);

}  // namespace warpline::ingest
