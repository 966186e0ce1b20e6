// SPDX-License-Identifier: Apache-2.0
#include "frame_sums.h"

using warpline::ingest::ReadyFrame;

namespace {

constexpr std::size_t kSumBytes = sizeof(unsigned long long);

/// A block takes a packet, if it is there.
__global__ void sum_packets(const std::uint8_t* data, const std::uint8_t* mask, unsigned long long* sum) {
  if (mask[blockIdx.x] == 0) return;
  const std::uint8_t* const packet = data + blockIdx.x * FrameSums::kPacketBytes;
  unsigned mine = 0;
  for (unsigned i = threadIdx.x; i < FrameSums::kPacketBytes; i += blockDim.x) mine += packet[i];
  atomicAdd(sum, mine);
}

}  // namespace

FrameSums::FrameSums(bool on_gpu) {
  cudaFuncAttributes loaded;  // before the first frame waits for it
  if (!on_gpu || cudaFuncGetAttributes(&loaded, sum_packets) != cudaSuccess) return;
  if (cudaMalloc(&gpu_sum_, kSumBytes) != cudaSuccess || cudaMemset(gpu_sum_, 0, kSumBytes) != cudaSuccess) {
    gpu_sum_ = nullptr;
  }
}

FrameSums::~FrameSums() { cudaFree(gpu_sum_); }

bool FrameSums::consume(const ReadyFrame& ready) {
  const warpline::flow::Frame& frame = ready.frame;
  if (ready.stream == nullptr) {
    for (unsigned i = 0; i < kPackets * kPacketBytes; ++i) {
      if (frame.mask[i / kPacketBytes] != 0) host_sum_ += frame.data[i];
    }
    return true;
  }
  if (gpu_sum_ == nullptr) return false;
  sum_packets<<<kPackets, 128, 0, ready.stream>>>(frame.data, frame.mask, gpu_sum_);
  return cudaGetLastError() == cudaSuccess;
}

std::optional<unsigned long long> FrameSums::sum() const {
  unsigned long long sum = host_sum_;
  if (gpu_sum_ != nullptr && cudaMemcpy(&sum, gpu_sum_, kSumBytes, cudaMemcpyDeviceToHost) != cudaSuccess)
    return std::nullopt;
  return sum;
}
