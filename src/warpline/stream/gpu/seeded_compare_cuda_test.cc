// SPDX-License-Identifier: Apache-2.0
// What a GPU finds wrong in streams against what the host does. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>

#include "warpline/base/random.h"
#include "warpline/stream/gpu/lane_memory_testing.cuh"
#include "warpline/stream/gpu/seeded_compare.h"
#include "warpline/stream/seeded_payload.h"

namespace warpline::stream {
namespace {

template <typename T>
T* managed(std::size_t count) {
  void* memory = nullptr;
  EXPECT_EQ(cudaMallocManaged(&memory, count * sizeof(T)), cudaSuccess);
  EXPECT_EQ(cudaMemset(memory, 0, count * sizeof(T)), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return static_cast<T*>(memory);
}

TEST(SeededCompare, FindsWhatTheHostFinds) {
  if (testing::no_gpu()) GTEST_SKIP() << "no GPU";
  constexpr std::uint32_t kPieces = 64;
  constexpr std::size_t kRoom = 40'000;
  const SeededPayload payload(5);
  auto* const table = managed<std::uint8_t>(payload.table().size());
  std::copy(payload.table().begin(), payload.table().end(), table);
  auto* const bytes = managed<std::uint8_t>(kPieces * kRoom);
  auto* const pieces = managed<SeededPiece>(kPieces);
  auto* const ended = managed<std::uint32_t>(1);
  auto* const verdict = managed<SeededVerdict>(1);
  Random random(3);
  std::uint64_t wrong = 0;
  for (std::uint64_t number = 1; number <= 20; ++number) {
    for (std::uint32_t i = 0; i < kPieces; ++i) {
      SeededPiece& piece = pieces[i];
      piece = {bytes + i * kRoom + random.below(16), random.below(30'000), random.below(1000), random.below(1 << 30)};
      auto* const to = const_cast<std::uint8_t*>(piece.bytes);
      packet::ChecksumSum sum;
      payload.copy(piece.stream, piece.offset, static_cast<std::uint32_t>(piece.length), to, sum);
      if (piece.length == 0 || random.below(4) != 0) continue;
      to[random.below(piece.length)] ^= 0x10;
      ++wrong;
    }
    const std::uint8_t* places = table;
    std::uint64_t seed = payload.mixed_seed();
    const SeededPiece* all = pieces;
    std::uint32_t count = kPieces;
    std::uint32_t* ends = ended;
    SeededVerdict* says = verdict;
    void* arguments[] = {&places, &seed, &all, &count, &ends, &says, &number};
    ASSERT_EQ(cudaLaunchKernel(seeded_compare_kernel(), dim3(5), dim3(kCompareThreads), arguments, 0, nullptr),
              cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(verdict->done, number);
    EXPECT_EQ(verdict->wrong, wrong);
  }
  EXPECT_GT(wrong, 100U);
  for (void* memory : std::vector<void*>{table, bytes, pieces, ended, verdict}) cudaFree(memory);
}

}  // namespace
}  // namespace warpline::stream
