// SPDX-License-Identifier: Apache-2.0
#include "consume_on_gpu.h"
#include "warpline/base/device/shared_words.h"
#include "warpline/stream/lanes/stream_reader.h"

namespace warpline::gpu_lane_test {
namespace {

__device__ void compare(const std::uint8_t* bytes, std::uint64_t begin, std::uint64_t count, ConsumedCounts* counts) {
  unsigned wrong = 0;
  for (std::uint64_t i = threadIdx.x; i < count; i += blockDim.x) wrong += bytes[i] != streamed_byte(begin + i) ? 1 : 0;
  if (wrong != 0) atomicAdd(&counts->wrong, wrong);
  if (threadIdx.x == 0) atomicAdd(&counts->bytes, count);
}

__global__ void consume_until_stopped(stream::StreamBoard board, std::uint64_t* stop, ConsumedCounts* counts) {
  __shared__ const std::uint8_t* bytes;
  __shared__ std::uint64_t begin, count;
  __shared__ bool stopped;
  stream::StreamReader reader;  // the first thread's
  for (std::uint64_t turn = 0;; ++turn) {
    stream::StreamReach reach;
    if (threadIdx.x == 0) {
      stopped = load_acquire(stop) != 0;
      if (!reader) reader = {board, blockIdx.x};
      count = 0;
      if (reader) {
        reach = reader.reach();
        begin = reader.released();
        count = reach.committed - begin;
        if (!reach.ended() && turn % 3 != 0) count /= 2;
        bytes = reader.at(begin);
      }
    }
    __syncthreads();
    if (stopped) return;
    compare(bytes, begin, count, counts);
    __syncthreads();
    if (threadIdx.x != 0 || !reader) continue;
    if (count != 0) reader.release(count);
    if (!reach.ended() || reader.released() != reach.committed) continue;
    reader.finish();
    atomicAdd(&counts->finished, 1);
  }
}

__global__ void compare_some(const std::uint8_t* bytes, std::uint64_t begin, std::uint64_t count,
                             ConsumedCounts* counts) {
  compare(bytes, begin, count, counts);
}

__global__ void pass_by_alias(std::uint8_t* ring, std::uint64_t ring_bytes, std::uint64_t rounds, AliasRounds* words,
                              ConsumedCounts* counts) {
  const bool writes = blockIdx.x == 0;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    // The mappings change their parts each round.
    std::uint8_t* const bytes = ring + ((round % 2 == 0) == writes ? ring_bytes : 0);
    if (threadIdx.x == 0) {
      while (load_acquire(writes ? &words->read : &words->written) != (writes ? round - 1 : round)) {
      }
      fence_aliases();
    }
    __syncthreads();
    if (writes) {
      for (std::uint64_t i = threadIdx.x; i < kAliasBytes; i += blockDim.x) bytes[i] = streamed_byte(round * 977 + i);
      fence_aliases();
      __threadfence();
    } else {
      compare(bytes, round * 977, kAliasBytes, counts);
    }
    __syncthreads();
    if (threadIdx.x == 0) store_release(writes ? &words->written : &words->read, round);
  }
}

__global__ void hold_until_stopped(HeldPlaces* places) {
  static_assert(sizeof(unsigned long long) == sizeof places->held);
  if (threadIdx.x == 0) atomicAdd_system(reinterpret_cast<unsigned long long*>(&places->held), 1);
  while (load_acquire(&places->stop) == 0) {
  }
}

}  // namespace

const void* hold_kernel() { return reinterpret_cast<const void*>(&hold_until_stopped); }
const void* consume_kernel() { return reinterpret_cast<const void*>(&consume_until_stopped); }
const void* alias_kernel() { return reinterpret_cast<const void*>(&pass_by_alias); }
const void* compare_kernel() { return reinterpret_cast<const void*>(&compare_some); }

}  // namespace warpline::gpu_lane_test
