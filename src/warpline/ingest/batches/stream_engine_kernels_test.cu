// SPDX-License-Identifier: Apache-2.0
// What the tests of StreamEngine put on streams.
#include "warpline/base/device/atomic_words.cuh"
#include "warpline/ingest/batches/stream_engine_testing.h"
#include "warpline/ingest/consumers/byte_sum.h"

namespace warpline::ingest {
namespace {

__global__ void await_gate(std::uint64_t* gate) {
  while (SystemWord(*gate).load_acquire() == 0) __nanosleep(1000);
}

__global__ void sum_batch(Segment* segments, std::uint32_t count, std::uint64_t* sum) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const bool begins = i == 0 || segments[i - 1].more == 0;
    if (!begins || segments[i].verdict != Verdict::forward) continue;
    const FrameRef frame = frame_at(segments + i);
    DeviceWord(*sum).add(frame_sum(frame));
    if (frame.data()[0] == kRefusedByte) segments[i].verdict = Verdict::user_drop;
  }
}

}  // namespace

bool load_gate_and_sums() {
  cudaFuncAttributes unused{};
  return cudaFuncGetAttributes(&unused, await_gate) == cudaSuccess &&
         cudaFuncGetAttributes(&unused, sum_batch) == cudaSuccess;
}

bool queue_gate_and_sums(const GpuBatch& batch, const std::uint64_t* gate, std::uint64_t* sum) {
  await_gate<<<1, 1, 0, batch.stream>>>(const_cast<std::uint64_t*>(gate));
  sum_batch<<<2, 64, 0, batch.stream>>>(batch.segments, batch.count, sum);
  return cudaGetLastError() == cudaSuccess;
}

}  // namespace warpline::ingest
