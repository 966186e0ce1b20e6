// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/gpu/copy_by_warp.cuh"
#include "warpline/stream/gpu/payload_kernels.h"
#include "warpline/stream/seeded_places.h"

namespace warpline::stream {
namespace {

/// Several CTAs share an order, others the next ones. A warp takes what lies in one piece of the table, and the next
/// such part of its order when it is through.
__global__ void __launch_bounds__(kMakeThreads)
    make_seeded(const std::uint8_t* table, std::uint64_t seed, const MakeOrder* orders, std::uint32_t count) {
  constexpr unsigned kGroups = kMakeCtas / kMakeCtasAnOrder;
  constexpr unsigned kWarps = kMakeCtasAnOrder * (kMakeThreads / kWarp);  // that share an order
  const unsigned warp = blockIdx.x % kMakeCtasAnOrder * (kMakeThreads / kWarp) + threadIdx.x / kWarp;
  for (std::uint32_t i = blockIdx.x / kMakeCtasAnOrder; i < count; i += kGroups) {
    const MakeOrder order = orders[i];
    if (order.length == 0) continue;
    const std::uint64_t first = order.offset / SeededPlaces::kPiece;
    const std::uint64_t parts = (order.offset + order.length - 1) / SeededPlaces::kPiece - first + 1;
    for (std::uint64_t part = warp; part < parts; part += kWarps) {
      const std::uint64_t begin = max(order.offset, (first + part) * SeededPlaces::kPiece);
      const std::uint64_t end = min(order.offset + order.length, (first + part + 1) * SeededPlaces::kPiece);
      copy_by_warp(order.to + (begin - order.offset),
                   table + SeededPlaces::of(seed, order.stream, begin) + begin % SeededPlaces::kPiece,
                   static_cast<std::uint32_t>(end - begin));
    }
  }
}

/// A warp takes a segment.
__global__ void __launch_bounds__(kFillThreads)
    fill_frames(const FillOrder* orders, std::uint32_t count, std::uint32_t* ended, std::uint64_t* done,
                std::uint64_t number) {
  constexpr unsigned kWarps = kFillThreads / kWarp;
  // Neighbours in a burst on different multiprocessors.
  for (std::uint32_t i = threadIdx.x / kWarp * gridDim.x + blockIdx.x; i < count; i += kWarps * gridDim.x) {
    const FillOrder order = orders[i];
    const std::uint32_t sum = copy_and_sum_by_warp(order.to, order.from, order.length);
    if (threadIdx.x % kWarp == 0) {
      *reinterpret_cast<std::uint16_t*>(order.checksum) = completed_checksum(order.sum, sum);
    }
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x != 0 || atomicAdd(ended, 1) != gridDim.x - 1) return;
  *ended = 0;
  __threadfence_system();
  *const_cast<volatile std::uint64_t*>(done) = number;
}

}  // namespace

const void* make_payload_kernel() { return reinterpret_cast<const void*>(&make_seeded); }
const void* fill_payload_kernel() { return reinterpret_cast<const void*>(&fill_frames); }

}  // namespace warpline::stream
