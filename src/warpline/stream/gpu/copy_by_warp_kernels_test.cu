// SPDX-License-Identifier: Apache-2.0
// The kernel by which the test of copy_by_warp.cuh copies.
#include "warpline/stream/gpu/copy_by_warp.cuh"
#include "warpline/stream/gpu/copy_by_warp_testing.h"
#include "warpline/stream/internal/lane_layout.h"

namespace warpline::stream::testing {
namespace {

__global__ void copy_pieces_one_by_one(const CopyPiece* pieces, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  if (i < count) copy_by_warp(pieces[i].to, pieces[i].from, pieces[i].length);
}

}  // namespace

const void* copy_pieces_kernel() { return reinterpret_cast<const void*>(&copy_pieces_one_by_one); }

}  // namespace warpline::stream::testing
