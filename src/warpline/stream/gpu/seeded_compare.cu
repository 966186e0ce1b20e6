// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/device/shared_words.h"
#include "warpline/stream/gpu/copy_by_warp.cuh"
#include "warpline/stream/gpu/seeded_compare.h"
#include "warpline/stream/seeded_places.h"

namespace warpline::stream {
namespace {

/// Returns how many of the bytes that a warp's lanes compared are wrong.
__device__ unsigned wrong_bytes(const std::uint8_t* bytes, const std::uint8_t* right, std::uint32_t length) {
  unsigned wrong = 0;
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x % kWarp; i < length; i += kWarp) wrong += bytes[i] != right[i];
  return wrong;
}

/// A warp takes what lies in one piece of the table, and the next such part when it is through.
__global__ void __launch_bounds__(kCompareThreads)
    compare_seeded(const std::uint8_t* table, std::uint64_t seed, const SeededPiece* pieces, std::uint32_t count,
                   std::uint32_t* ended, SeededVerdict* verdict, std::uint64_t number) {
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (blockDim.x / kWarp);
  std::uint64_t next = std::uint64_t{blockIdx.x} * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  unsigned wrong = 0;
  fence_aliases();           // lanes that stay write rings by either address
  std::uint64_t before = 0;  // parts of the pieces before this one
  for (std::uint32_t i = 0; i < count; ++i) {
    const SeededPiece piece = pieces[i];
    if (piece.length == 0) continue;
    const std::uint64_t first = piece.offset / SeededPlaces::kPiece;
    const std::uint64_t parts = (piece.offset + piece.length - 1) / SeededPlaces::kPiece - first + 1;
    for (; next < before + parts; next += warps) {
      const std::uint64_t begin = max(piece.offset, (first + next - before) * SeededPlaces::kPiece);
      const std::uint64_t end = min(piece.offset + piece.length, (first + next - before + 1) * SeededPlaces::kPiece);
      wrong += wrong_bytes(piece.bytes + (begin - piece.offset),
                           table + SeededPlaces::of(seed, piece.stream, begin) + begin % SeededPlaces::kPiece,
                           static_cast<std::uint32_t>(end - begin));
    }
    before += parts;
  }
  wrong = __reduce_add_sync(kWholeWarp, wrong);
  if (wrong != 0 && threadIdx.x % kWarp == 0) {
    atomicAdd_system(reinterpret_cast<unsigned long long*>(&verdict->wrong), wrong);
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x != 0 || atomicAdd(ended, 1) != gridDim.x - 1) return;
  *ended = 0;
  __threadfence_system();
  *const_cast<volatile std::uint64_t*>(&verdict->done) = number;
}

}  // namespace

const void* seeded_compare_kernel() { return reinterpret_cast<const void*>(&compare_seeded); }

}  // namespace warpline::stream
