// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/gpu_place.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "warpline/base/random.h"

namespace warpline::gpu {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kMultiprocessors = 132;

class GpuPlaces : public testing::Test {
 protected:
  bool claim(KernelDemand demand, std::uint32_t multiprocessors = kMultiprocessors, int gpu = 0) {
    Result<GpuPlace> place = GpuPlace::claim(gpu, multiprocessors, demand);
    if (!place) {
      EXPECT_EQ(place.error().kind, ErrorKind::environment);
      why_ = place.error().message();
      return false;
    }
    places_.push_back(*std::move(place));
    return true;
  }

  /// Stand for __global__ functions.
  static constexpr char kFunctions[2] = {};
  static constexpr const void* kSmall = &kFunctions[0];
  static constexpr const void* kLarge = &kFunctions[1];

  std::vector<GpuPlace> places_;
  std::string why_;
};

TEST_F(GpuPlaces, AreAsManyAsAGpuRunsKernelsUntilOneIsGivenBack) {
  for (std::uint32_t i = 0; i < kResidentGrids; ++i) ASSERT_TRUE(claim({kSmall, 1, 16}));
  EXPECT_FALSE(claim({kSmall, 1, 16}));
  EXPECT_THAT(why_, HasSubstr("more than 128"));
  EXPECT_TRUE(claim({kSmall, 1, 16}, kMultiprocessors, 1)) << "another GPU";
  places_.pop_back();
  places_.pop_back();
  EXPECT_TRUE(claim({kSmall, 1, 16}));
}

TEST_F(GpuPlaces, HoldOneKernelThatFillsTheGpu) {
  EXPECT_FALSE(claim({kLarge, kMultiprocessors + 1, 1}));
  EXPECT_TRUE(claim({kLarge, kMultiprocessors, 1}));
  EXPECT_FALSE(claim({kSmall, 1, 32}));
  EXPECT_THAT(why_, HasSubstr("2 kernels of 133 CTAs"));
}

TEST_F(GpuPlaces, FillMultiprocessorsWithKernelsOfOneKind) {
  for (std::uint32_t i = 0; i < 2 * kMultiprocessors / 8; ++i) ASSERT_TRUE(claim({kLarge, 8, 2})) << i;
  EXPECT_FALSE(claim({kLarge, 8, 2}));
}

TEST_F(GpuPlaces, RefuseAKernelThatNoMultiprocessorHolds) {
  EXPECT_FALSE(claim({kLarge, 1, 0}));
  EXPECT_THAT(why_, HasSubstr("larger than a multiprocessor"));
}

TEST_F(GpuPlaces, CountThatSmallCtasMaySpoilEachMultiprocessorForALargeOne) {
  ASSERT_TRUE(claim({kSmall, 100, 32}));
  EXPECT_TRUE(claim({kLarge, 32, 1}));
  EXPECT_FALSE(claim({kLarge, 1, 1}));
}

/// As on an H200: copies of 512 threads, then engines of 64.
TEST_F(GpuPlaces, HoldTheCopiesAndEnginesOfFourteenPipelines) {
  constexpr std::uint32_t kPipelines = 14;
  for (std::uint32_t i = 0; i < 2 * kPipelines; ++i) ASSERT_TRUE(claim({kLarge, 8, 2})) << i;
  for (std::uint32_t i = 0; i < kPipelines; ++i) ASSERT_TRUE(claim({kSmall, 16, 20})) << i;
}

/// As on an H200: of two copies a multiprocessor may have no room for an engine's CTA, but not of one.
TEST_F(GpuPlaces, HoldTheCopiesOfFourteenPipelinesAndEnginesOfLargeCtas) {
  constexpr std::uint32_t kPipelines = 14;
  for (std::uint32_t i = 0; i < 2 * kPipelines; ++i) ASSERT_TRUE(claim({kLarge, 8, 2})) << i;
  for (std::uint32_t i = 0; i < kPipelines; ++i) ASSERT_TRUE(claim({kSmall, 1, 4})) << i;
}

/// Threads and registers of a multiprocessor, and how many CTAs it takes.
using Resources = std::array<std::uint32_t, 3>;
constexpr Resources kCapacity{2048, 65536, 32};

/// Whether a GPU begins all kernels, one after the other, that gives each CTA to whichever multiprocessor has room: the
/// emptiest, or any.
bool all_run(const std::vector<std::pair<Resources, std::uint32_t>>& kernels, std::uint32_t multiprocessors,
             Random& random, bool emptiest) {
  std::vector<Resources> used(multiprocessors, Resources{});
  for (const auto& [need, ctas] : kernels) {
    for (std::uint32_t cta = 0; cta < ctas; ++cta) {
      std::vector<Resources*> open;
      for (Resources& has : used) {
        bool fits = true;
        for (std::size_t i = 0; i < need.size(); ++i) fits &= has[i] + need[i] <= kCapacity[i];
        if (fits) open.push_back(&has);
      }
      if (open.empty()) return false;
      Resources& chosen = *(emptiest ? *std::ranges::min_element(open, {}, [](const Resources* r) { return (*r)[0]; })
                                     : open[random.below(open.size())]);
      for (std::size_t i = 0; i < need.size(); ++i) chosen[i] += need[i];
    }
  }
  return true;
}

TEST_F(GpuPlaces, AreFoundWhereverAGpuPutsCtas) {
  Random random(11);
  int granted = 0;
  for (int round = 0; round < 2000; ++round) {
    places_.clear();
    const auto multiprocessors = static_cast<std::uint32_t>(2 + random.below(20));
    std::vector<std::pair<Resources, std::uint32_t>> kernels;
    const std::array<char, 5> functions{};
    bool fits = true;
    for (std::uint64_t left = 1 + random.below(5); left != 0 && fits; --left) {
      const auto threads = static_cast<std::uint32_t>(32 * (1 + random.below(32)));
      const auto registers = static_cast<std::uint32_t>(threads * (16 + 8 * random.below(6)));
      const std::uint32_t most = std::min({2048 / threads, 65536 / registers, 32U});
      const auto ctas = static_cast<std::uint32_t>(1 + random.below(most * multiprocessors));
      fits = claim({&functions[kernels.size()], ctas, most}, multiprocessors);
      kernels.push_back({{threads, registers, 1}, ctas});
    }
    if (!fits) continue;
    ++granted;
    for (const bool emptiest : {false, true}) {
      ASSERT_TRUE(all_run(kernels, multiprocessors, random, emptiest)) << "round " << round;
    }
  }
  EXPECT_GT(granted, 200);
}

}  // namespace
}  // namespace warpline::gpu
