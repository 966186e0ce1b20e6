// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/piece_lane.h"

namespace warpline::handoff {

/// Threads of a CTA of launched_copies_kernel(), and its warps, each with a piece in hand.
inline constexpr unsigned kLaunchedThreads = 256;
inline constexpr unsigned kLaunchedWarps = kLaunchedThreads / 32;

/// Pieces in pinned memory, in a ring of a power of two.
struct PieceRing {
  const Piece* pieces = nullptr;
  std::uint32_t mask = 0;  ///< its size less one
};

/// Returns the __global__ function of a PieceRing, the first piece and how many are to be copied, both std::uint32_t.
[[nodiscard]] const void* launched_copies_kernel();

}  // namespace warpline::handoff
