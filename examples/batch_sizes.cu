// SPDX-License-Identifier: Apache-2.0
#include "batch_sizes.h"

using warpline::Segment;

namespace {

constexpr unsigned kThreads = 128;

/// A thread takes a packet, which may lie in several pieces, and looks at its bytes, as a consumer would.
__global__ void count_sizes(const Segment* segments, std::uint32_t count, unsigned long long* sizes) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const bool begins = i < count && (i == 0 || segments[i - 1].more == 0);
  if (!begins || segments[i].verdict != warpline::Verdict::forward) return;
  unsigned length = 0;
  for (unsigned piece = 0; piece <= segments[i].more; ++piece) length += segments[i + piece].length;
  atomicAdd(sizes + (32 - __clz(static_cast<int>(length))) % BatchSizes::kSizes, 1);
}

}  // namespace

BatchSizes::BatchSizes() {
  constexpr std::size_t kBytes = kSizes * sizeof(*counts_);
  if (cudaMalloc(&counts_, kBytes) != cudaSuccess || cudaMemset(counts_, 0, kBytes) != cudaSuccess) counts_ = nullptr;
}

BatchSizes::~BatchSizes() { cudaFree(counts_); }

bool BatchSizes::consume(const warpline::ingest::GpuBatch& batch) {
  if (counts_ == nullptr) return false;
  const unsigned ctas = (batch.count + kThreads - 1) / kThreads;
  count_sizes<<<ctas, kThreads, 0, batch.stream>>>(batch.segments, batch.count, counts_);
  return cudaGetLastError() == cudaSuccess;
}

std::optional<std::array<unsigned long long, BatchSizes::kSizes>> BatchSizes::counts() const {
  std::array<unsigned long long, kSizes> counts{};
  if (cudaMemcpy(counts.data(), counts_, sizeof(counts), cudaMemcpyDeviceToHost) != cudaSuccess) return std::nullopt;
  return counts;
}
