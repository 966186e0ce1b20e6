// SPDX-License-Identifier: Apache-2.0
// The kernels that put packets into frames for a consumer on another stream.
#include "warpline/ingest/frames/assemble_on_gpu.cuh"
#include "warpline/ingest/frames/stream_frames.h"

namespace warpline::ingest {
namespace {

__global__ void take_in_turn(flow::AssemblerView view, flow::PacketBatch batch, std::uint64_t sequence, BatchTurn* turn,
                             std::uint64_t* told) {
  __shared__ Segment held[kHeldByAssembler];
  if (turn->sequence != sequence) return;
  const std::uint32_t from = turn->taken;
  batch.segments = held_by_cta(held, batch.segments, batch.count) + from;
  const std::uint32_t all = batch.count;
  __syncthreads();
  batch.count -= from;
  const std::uint32_t taken = from + flow::place_batch_together(view, batch, flow::WhenFull::retry);
  if (threadIdx.x != 0) return;
  turn->taken = taken < all ? taken : 0;
  if (taken < all) return;
  turn->sequence = sequence + 1;
  store_release(told, sequence + 1);
}

__global__ void flush_frames(flow::AssemblerView view) {
  flow::FrameCore core(view);
  core.flush();
  core.publish();
}

__global__ void expire_frames(flow::AssemblerView view, std::uint64_t now, std::uint64_t limit) {
  flow::FrameCore core(view);
  core.expire(now, limit);
  core.publish();
}

}  // namespace

const void* take_in_turn_kernel() { return reinterpret_cast<const void*>(&take_in_turn); }
const void* flush_frames_kernel() { return reinterpret_cast<const void*>(&flush_frames); }
const void* expire_frames_kernel() { return reinterpret_cast<const void*>(&expire_frames); }

}  // namespace warpline::ingest
