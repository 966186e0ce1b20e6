// SPDX-License-Identifier: Apache-2.0
#include "warpline/flow/frame_gpu.cuh"
#include "warpline/flow/frame_gpu.h"

namespace warpline::flow {
namespace {

__global__ void place_frame_batch(AssemblerView view, PacketBatch batch, WhenFull when_full, std::uint32_t* decided) {
  const std::uint32_t count = place_batch_together(view, batch, when_full);
  if (threadIdx.x == 0) *decided = count;
}

}  // namespace

const void* frame_batch_kernel() { return reinterpret_cast<const void*>(&place_frame_batch); }

}  // namespace warpline::flow
