// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "warpline/handoff/lanes/copy_by_warp.cuh"
#include "warpline/handoff/lanes/launched_copies.h"

namespace warpline::handoff {
namespace {

__global__ void __launch_bounds__(kLaunchedThreads)
    copy_pieces(PieceRing ring, std::uint32_t first, std::uint32_t count) {
  const unsigned lane = threadIdx.x % kWarp;
  for (std::uint32_t i = blockIdx.x * kLaunchedWarps + threadIdx.x / kWarp; i < count;
       i += gridDim.x * kLaunchedWarps) {
    const Piece piece = ring.pieces[(first + i) & ring.mask];
    copy_by_warp(static_cast<std::uint8_t*>(piece.to), static_cast<const std::uint8_t*>(piece.from),
                 static_cast<std::uint32_t>(piece.length), lane);
  }
}

}  // namespace

const void* launched_copies_kernel() { return reinterpret_cast<const void*>(&copy_pieces); }

}  // namespace warpline::handoff
