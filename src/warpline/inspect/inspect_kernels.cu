// SPDX-License-Identifier: Apache-2.0
#include "warpline/inspect/inspect_kernels.h"

namespace warpline::inspect {
namespace {

__global__ void add_to_digests(const StreamPiece* pieces, std::uint32_t count, Sha256* streams) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const StreamPiece piece = pieces[i];
  Sha256 digest = streams[piece.stream];
  digest.add(piece.bytes, piece.count);
  streams[piece.stream] = digest;
}

/// Threads take spans of a piece in turns, so that a warp reads from one stretch of memory. Who has the last one knows
/// the state that the stream is in behind the piece.
__global__ void __launch_bounds__(kSearchThreads)
    search(PatternTable table, const StreamPiece* pieces, std::uint32_t count, std::uint16_t* states,
           unsigned long long* found) {
  __shared__ std::uint8_t classes[256];
  __shared__ std::uint16_t behind;
  for (std::uint32_t i = threadIdx.x; i < 256; i += blockDim.x) classes[i] = table.classes[i];
  table.classes = classes;
  __syncthreads();
  for (std::uint32_t p = blockIdx.x; p < count; p += gridDim.x) {
    const StreamPiece piece = pieces[p];
    const std::uint16_t state = states[piece.stream];
    for (std::uint64_t begin = std::uint64_t{threadIdx.x} * kSearchSpan; begin < piece.count;
         begin += std::uint64_t{kSearchThreads} * kSearchSpan) {
      const std::uint64_t end = begin + kSearchSpan < piece.count ? begin + kSearchSpan : piece.count;
      const std::uint16_t last = scan_part(table, part_of(table, begin, end), state, piece.bytes,
                                           [&](std::uint32_t pattern) { atomicAdd(&found[pattern], 1ULL); });
      if (end == piece.count) behind = last;
    }
    __syncthreads();
    if (threadIdx.x == 0 && piece.count != 0) states[piece.stream] = behind;
    __syncthreads();
  }
}

}  // namespace

const void* digest_kernel() { return reinterpret_cast<const void*>(&add_to_digests); }
const void* search_kernel() { return reinterpret_cast<const void*>(&search); }

}  // namespace warpline::inspect
