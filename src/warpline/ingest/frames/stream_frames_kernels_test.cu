// SPDX-License-Identifier: Apache-2.0
// What the tests of StreamFrames put on streams.
#include "warpline/base/device/atomic_words.cuh"
#include "warpline/ingest/frames/frame_sum.h"
#include "warpline/ingest/frames/stream_frames_testing.h"

namespace warpline::ingest {
namespace {

__global__ void sum_frame(flow::Frame frame, flow::FramePlan plan, std::uint64_t* gate, std::uint64_t* sum) {
  while (SystemWord(*gate).load_acquire() == 0) __nanosleep(1000);
  const std::uint64_t salt = frame_salt(frame);
  std::uint64_t all = threadIdx.x == 0 ? frame_head_sum(frame) : 0;
  for (std::uint32_t slot = threadIdx.x; slot < plan.packets; slot += blockDim.x) {
    if (frame.mask[slot] != 0) all += payload_sum(plan, frame, salt, slot);
  }
  DeviceWord(*sum).add(all);
}

}  // namespace

bool load_frame_sum() {
  cudaFuncAttributes unused{};
  return cudaFuncGetAttributes(&unused, sum_frame) == cudaSuccess;
}

bool queue_frame_sum(const ReadyFrame& ready, const flow::FramePlan& plan, std::uint64_t* gate, std::uint64_t* sum) {
  sum_frame<<<1, 64, 0, ready.stream>>>(ready.frame, plan, gate, sum);
  return cudaGetLastError() == cudaSuccess;
}

}  // namespace warpline::ingest
