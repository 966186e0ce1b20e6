// SPDX-License-Identifier: Apache-2.0
// What a GPU finds wrong in streams against what the host does. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/gpu/gpu_testing.cuh"
#include "warpline/stream/gpu/seeded_compare.h"
#include "warpline/stream/seeded_payload.h"

namespace warpline::stream {
namespace {

using gpu::testing::managed_array;

TEST(SeededCompare, FindsWhatTheHostFinds) {
  if (gpu::testing::no_gpu()) GTEST_SKIP() << "no GPU";
  constexpr std::uint32_t kPieces = 64;
  constexpr std::size_t kRoom = 40'000;
  const SeededPayload payload(5);
  const auto table = managed_array<std::uint8_t>(payload.table().size());
  std::copy(payload.table().begin(), payload.table().end(), table.get());
  const auto bytes = managed_array<std::uint8_t>(kPieces * kRoom);
  const auto pieces = managed_array<SeededPiece>(kPieces);
  const auto ended = managed_array<std::uint32_t>(1);
  const auto verdict = managed_array<SeededVerdict>(1);
  Random random(3);
  std::uint64_t wrong = 0;
  for (std::uint64_t number = 1; number <= 20; ++number) {
    for (std::uint32_t i = 0; i < kPieces; ++i) {
      SeededPiece& piece = pieces[i];
      piece = {bytes.get() + i * kRoom + random.below(16), random.below(30'000), random.below(1000),
               random.below(1 << 30)};
      auto* const to = const_cast<std::uint8_t*>(piece.bytes);
      packet::ChecksumSum sum;
      payload.copy(piece.stream, piece.offset, static_cast<std::uint32_t>(piece.length), to, sum);
      if (piece.length == 0 || random.below(4) != 0) continue;
      to[random.below(piece.length)] ^= 0x10;
      ++wrong;
    }
    gpu::testing::launch(seeded_compare_kernel(), 5, kCompareThreads, table.get(), payload.mixed_seed(), pieces.get(),
                         kPieces, ended.get(), verdict.get(), number);
    EXPECT_EQ(verdict[0].done, number);
    EXPECT_EQ(verdict[0].wrong, wrong);
  }
  EXPECT_GT(wrong, 100U);
}

}  // namespace
}  // namespace warpline::stream
