// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "warpline/base/result.h"
#include "warpline/memory/pool_settings.h"
#include "warpline/stream/payload/payload_lane.h"
#include "warpline/stream/seeded_payload.h"

namespace warpline::stream_port {

/// Returns a lane on that GPU, with rings in its memory or pinned in the host's: kernels are launched for each batch.
/// Frames lie where the GPU reaches. `payload` is read in this call alone. Errors: usage, for rings of another kind, or
/// that are no whole pages of the GPU; environment, if there is no GPU, or no room.
[[nodiscard]] Result<std::unique_ptr<stream::PayloadLane>> make_gpu_payload_lane(const stream::PayloadShape& shape,
                                                                                 const stream::SeededPayload& payload,
                                                                                 int gpu, memory::MemoryKind rings);

}  // namespace warpline::stream_port
