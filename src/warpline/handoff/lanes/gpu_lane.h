// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "warpline/base/piece_lane.h"
#include "warpline/base/result.h"

namespace warpline::handoff {

/// What a GPU does with pieces: copies them, or writes their block_hash() (base/block_hash.h) to `to`.
enum class GpuLaneWork : std::uint8_t { copy, hash };

/// A persistent kernel on that GPU works on them, from start() until the lane goes. It reaches its own memory, and host
/// memory that is pinned.
[[nodiscard]] Result<std::unique_ptr<PieceLane>> make_gpu_lane(GpuLaneWork work, int gpu);

}  // namespace warpline::handoff
