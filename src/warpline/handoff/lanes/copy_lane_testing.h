// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/handoff/engine_testing.h"
#include "warpline/handoff/lanes/copy_lane.h"

namespace warpline::handoff::testing {

struct TestCopy {
  void* to;
  const void* from;
  std::size_t length;
};

using Pages = std::vector<std::uint8_t, PageAllocator<std::uint8_t>>;
inline constexpr std::size_t kCopyRoom = 2048;
inline constexpr std::uint32_t kCopies = 6000;

/// Copies of all lengths and alignments in batches of all sizes, each between places of its own: every byte arrives,
/// none beside it is touched, and batches land in order. `from` and `to` have kCopies * kCopyRoom bytes.
template <typename Lane>
void expect_copies(Lane& lane, Pages& from, Pages& to) {
  Random random(7);
  for (std::uint8_t& byte : from) byte = static_cast<std::uint8_t>(random.next());
  std::vector<TestCopy> copies;
  for (std::uint32_t i = 0; i < kCopies; ++i) {
    const std::size_t step = std::size_t{1} << random.below(5);
    const std::size_t start = kCopyRoom * i;
    copies.push_back({&to[start + random.below(8) * step], &from[start + random.below(8) * step],
                      1 + random.below(i % 2 == 0 ? 100 : kCopyRoom - 256)});
  }
  Pages expected = to;
  for (const TestCopy& copy : copies) {
    std::memcpy(&expected[static_cast<std::size_t>(static_cast<std::uint8_t*>(copy.to) - to.data())], copy.from,
                copy.length);
  }
  std::uint64_t batches = 0;
  for (std::uint32_t begin = 0; begin < kCopies; ++batches) {
    const auto count = static_cast<std::uint32_t>(1 + random.below(Lane::kMostCopies));
    const std::uint32_t fitting = std::min(count, kCopies - begin);
    while (!lane.submit(&copies[begin], fitting)) {
      static_cast<void>(lane.landed());
      ASSERT_FALSE(lane.failure()) << lane.failure()->message();
      std::this_thread::yield();
    }
    begin += fitting;
  }
  while (lane.landed() != batches) {
    ASSERT_FALSE(lane.failure()) << lane.failure()->message();
    std::this_thread::yield();
  }
  EXPECT_TRUE(to == expected);
}

}  // namespace warpline::handoff::testing
