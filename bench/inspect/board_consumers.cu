// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#include "board_consumers.h"
#include "warpline/inspect/inspect_kernels.h"
#include "warpline/stream/lanes/stream_reader.h"

namespace warpline::bench {
namespace {

constexpr unsigned kThreads = 32;  // of those that digest: a thread a stream

void expect_done(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "inspect_rounds: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(3);
}

__global__ void name_places(stream::StreamBoard board) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < board.count) board.places[i].begin(1);
}

__global__ void commit_more(stream::StreamBoard board, std::uint32_t streams) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < streams) board.places[i].reach += board.ring_bytes;
}

__global__ void digest_streams(stream::StreamBoard board, std::uint32_t streams, inspect::Sha256* digests) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= streams) return;
  stream::StreamReader stream(board, i);
  if (!stream) return;
  const std::uint64_t count = stream.reach().committed - stream.released();
  inspect::Sha256 digest = digests[i];
  digest.add(stream.at(stream.released()), count);
  digests[i] = digest;
  stream.release(count);
}

__global__ void __launch_bounds__(inspect::kSearchThreads)
    search_streams(stream::StreamBoard board, std::uint32_t streams, inspect::PatternTable table, std::uint16_t* states,
                   unsigned long long* found) {
  __shared__ std::uint8_t classes[256];
  __shared__ const std::uint8_t* bytes;
  __shared__ std::uint64_t count;
  __shared__ std::uint16_t behind;
  for (std::uint32_t i = threadIdx.x; i < 256; i += blockDim.x) classes[i] = table.classes[i];
  table.classes = classes;
  for (std::uint32_t place = blockIdx.x; place < streams; place += gridDim.x) {
    stream::StreamReader stream;  // the first thread's
    if (threadIdx.x == 0) {
      stream = {board, place};
      count = stream ? stream.reach().committed - stream.released() : 0;
      bytes = stream.at(stream.released());
    }
    __syncthreads();
    const std::uint16_t state = states[place];
    for (std::uint64_t begin = std::uint64_t{threadIdx.x} * inspect::kSearchSpan; begin < count;
         begin += std::uint64_t{inspect::kSearchThreads} * inspect::kSearchSpan) {
      const std::uint64_t end = begin + inspect::kSearchSpan < count ? begin + inspect::kSearchSpan : count;
      const std::uint16_t last = inspect::scan_part(table, inspect::part_of(table, begin, end), state, bytes,
                                                    [&](std::uint32_t pattern) { atomicAdd(&found[pattern], 1ULL); });
      if (end == count) behind = last;
    }
    __syncthreads();
    if (threadIdx.x == 0 && count != 0) {
      states[place] = behind;
      stream.release(count);
    }
    __syncthreads();
  }
}

}  // namespace

BoardConsumers::BoardConsumers(const std::vector<std::uint8_t>& text, std::uint32_t most, std::uint64_t length)
    : committed_(most) {
  board_.count = most;
  board_.ring_bytes = length;
  expect_done(cudaMalloc(&rings_, 2 * length * most), "rings");
  expect_done(cudaMemcpy2D(rings_, 2 * length, text.data(), length, length, most, cudaMemcpyHostToDevice), "text");
  const std::size_t words = std::size_t{most} + stream::StreamBoard::groups_of(most) + 8;
  expect_done(cudaHostAlloc(&words_, words * sizeof(std::uint64_t), cudaHostAllocMapped), "words");
  for (std::size_t i = 0; i < words; ++i) words_[i] = 0;
  expect_done(cudaMalloc(&board_.places, most * sizeof(stream::StreamPlace)), "places");
  board_.rings = rings_;
  board_.changed = words_;
  board_.released = words_ + 8;
  board_.groups = board_.released + most;
  name_places<<<(most + 255) / 256, 256>>>(board_);
  expect_done(cudaDeviceSynchronize(), "names");
}

BoardConsumers::~BoardConsumers() {
  cudaFree(rings_);
  cudaFree(board_.places);
  cudaFreeHost(words_);
}

void BoardConsumers::commit(std::uint32_t streams) {
  commit_more<<<(streams + 255) / 256, 256>>>(board_, streams);
  expect_done(cudaDeviceSynchronize(), "bytes that have come");
}

bool BoardConsumers::digest(std::uint32_t streams, inspect::Sha256* digests) {
  digest_streams<<<(streams + kThreads - 1) / kThreads, kThreads>>>(board_, streams, digests);
  return take_releases(streams);
}

bool BoardConsumers::search(std::uint32_t streams, const inspect::PatternTable& table, std::uint16_t* states,
                            unsigned long long* found, unsigned ctas) {
  search_streams<<<ctas, inspect::kSearchThreads>>>(board_, streams, table, states, found);
  return take_releases(streams);
}

bool BoardConsumers::take_releases(std::uint32_t streams) {
  expect_done(cudaDeviceSynchronize(), "consumers");
  std::uint32_t right = 0;
  board_.take([&](std::uint32_t place, stream::ReleaseWord word) {
    const std::uint64_t more = word.since(committed_[place]);
    committed_[place] += more;
    right += more == board_.ring_bytes ? 1 : 0;
  });
  return right == streams;
}

}  // namespace warpline::bench
