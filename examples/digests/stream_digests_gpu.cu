// SPDX-License-Identifier: Apache-2.0
// Digests by a kernel that stays on GPU 0, beside the lane: a block has a connection at a time, of whose bytes its
// first thread makes the digest while the others search.
#include <cstring>
#include <span>
#include <vector>

#include "stream_digests.h"
#include "warpline/base/device/shared_words.h"

using namespace warpline;

namespace {

constexpr unsigned kThreads = 256;
constexpr std::uint64_t kPiece = 64 << 10;  // bytes that are released at a time: the window opens by as many
constexpr std::uint64_t kSpan = 64;         // bytes that a thread searches at a time

__global__ void __launch_bounds__(kThreads)
    consume(stream::StreamBoard board, inspect::PatternTable table, std::uint64_t* stop, StreamFindings* findings) {
  __shared__ unsigned long long found[StreamFindings::kPatterns];
  __shared__ const std::uint8_t* bytes;
  __shared__ std::uint64_t count;
  __shared__ std::uint16_t state, behind;
  __shared__ bool stopped;
  // The first thread's.
  stream::StreamReader stream;
  stream::StreamReach reach;
  inspect::Sha256 digest;
  if (threadIdx.x < StreamFindings::kPatterns) found[threadIdx.x] = 0;
  if (threadIdx.x == 0) state = behind = 0;
  while (true) {
    if (threadIdx.x == 0) {
      stopped = load_acquire(stop) != 0;
      if (!stream) stream = {board, blockIdx.x};
      count = 0;
      if (stream) {
        reach = stream.reach();
        count = reach.committed - stream.released();
        if (count > kPiece) count = kPiece;
        bytes = stream.at(stream.released());
      }
    }
    __syncthreads();
    if (stopped) return;
    if (threadIdx.x == 0) {
      digest.add(bytes, count);
    } else {
      // Each thread begins as many bytes before its span as a pattern may have there.
      for (std::uint64_t begin = (threadIdx.x - 1) * kSpan; begin < count; begin += (kThreads - 1) * kSpan) {
        const std::uint64_t end = begin + kSpan < count ? begin + kSpan : count;
        const std::uint16_t last = inspect::scan_part(table, inspect::part_of(table, begin, end), state, bytes,
                                                      [](std::uint32_t pattern) { atomicAdd(&found[pattern], 1ULL); });
        if (end == count) behind = last;
      }
    }
    __syncthreads();
    if (threadIdx.x != 0 || !stream) continue;
    state = behind;
    if (count != 0) stream.release(count);
    if (!reach.ended() || stream.released() != reach.committed) continue;
    findings[blockIdx.x].digest = digest;
    for (std::uint32_t i = 0; i < StreamFindings::kPatterns; ++i) {
      findings[blockIdx.x].found[i] = found[i];
      found[i] = 0;
    }
    stream.finish();
    digest = {};
    state = behind = 0;
  }
}

/// Memory by cudaMalloc or cudaHostAlloc.
using Memory = std::unique_ptr<void, cudaError_t (*)(void*)>;

Memory on_gpu(std::size_t bytes) {
  void* memory = nullptr;
  (void)cudaMalloc(&memory, bytes);
  return {memory, cudaFree};
}

Memory pinned(std::size_t bytes) {
  void* memory = nullptr;
  if (cudaHostAlloc(&memory, bytes, cudaHostAllocMapped) == cudaSuccess) std::memset(memory, 0, bytes);
  return {memory, cudaFreeHost};
}

class GpuDigests final : public StreamDigests {
 public:
  /// Takes memory and loads the kernel, before a lane's kernel stays. False if CUDA does not let it.
  bool prepare(const inspect::PatternSet& patterns, std::uint32_t connections) {
    cudaFuncAttributes loaded;
    if (cudaFuncGetAttributes(&loaded, consume) != cudaSuccess) return false;
    table_ = patterns.table();
    table_.classes = copy(patterns.classes());
    table_.next = copy(patterns.next());
    table_.ends = copy(patterns.ends());
    table_.shorter = copy(patterns.shorter());
    findings_ = pinned(connections * sizeof(StreamFindings));
    stop_ = pinned(sizeof(std::uint64_t));
    return findings_ && stop_ && cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess &&
           cudaGetLastError() == cudaSuccess;
  }
  ~GpuDigests() override {
    end();
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  }

  [[nodiscard]] int gpu() const override { return 0; }
  [[nodiscard]] bool begin(const stream::StreamBoard& board) override {
    consume<<<board.count, kThreads, 0, stream_>>>(board, table_, static_cast<std::uint64_t*>(stop_.get()), findings());
    return cudaGetLastError() == cudaSuccess;
  }
  void end() override {
    if (stop_) store_release(static_cast<std::uint64_t*>(stop_.get()), 1);
    if (stream_ != nullptr) (void)cudaStreamSynchronize(stream_);
  }
  [[nodiscard]] const StreamFindings& of(std::uint32_t place) const override { return findings()[place]; }

 private:
  [[nodiscard]] StreamFindings* findings() const { return static_cast<StreamFindings*>(findings_.get()); }
  template <typename T>
  const T* copy(std::span<const T> values) {
    arrays_.push_back(on_gpu(values.size_bytes()));
    void* const to = arrays_.back().get();
    (void)cudaMemcpy(to, values.data(), values.size_bytes(), cudaMemcpyHostToDevice);
    return static_cast<const T*>(to);
  }

  inspect::PatternTable table_;
  std::vector<Memory> arrays_;
  Memory findings_{nullptr, cudaFreeHost};
  Memory stop_{nullptr, cudaFreeHost};
  cudaStream_t stream_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<StreamDigests>> StreamDigests::create(const inspect::PatternSet& patterns,
                                                             std::uint32_t connections) {
  auto digests = std::make_unique<GpuDigests>();
  if (digests->prepare(patterns, connections)) return std::unique_ptr<StreamDigests>(std::move(digests));
  return environment_error("digests on a GPU", cudaGetErrorString(cudaGetLastError()),
                           "use stream_digests, which needs none");
}
