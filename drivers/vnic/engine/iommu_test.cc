// SPDX-License-Identifier: Apache-2.0
#include "vnic/engine/iommu.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <map>
#include <thread>

#include "warpline/base/property_testing.h"

namespace warpline::vnic {
namespace {

TEST(Iommu, AllowsNothingAtFirst) {
  const Iommu iommu;
  Iommu::Cache cache;
  EXPECT_FALSE(iommu.allows(0, 1, cache));
  EXPECT_FALSE(iommu.allows(0x1000, 64, cache));
}

TEST(Iommu, AllowsWhatIsMappedToTheByte) {
  Iommu iommu;
  Iommu::Cache cache;
  ASSERT_EQ(iommu.map(0x1000, 0x1000), 0);
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_TRUE(iommu.allows(0x1000, 0x1000, cache));
    EXPECT_TRUE(iommu.allows(0x1fff, 1, cache));
    EXPECT_FALSE(iommu.allows(0xfff, 1, cache));
    EXPECT_FALSE(iommu.allows(0xfff, 2, cache));
    EXPECT_FALSE(iommu.allows(0x2000, 1, cache));
    EXPECT_FALSE(iommu.allows(0x1fff, 2, cache));
    EXPECT_FALSE(iommu.allows(0x1001, 0x1000, cache));
    EXPECT_FALSE(iommu.allows(0x1001, std::numeric_limits<std::uint32_t>::max(), cache));
    EXPECT_FALSE(iommu.allows(std::numeric_limits<std::uint64_t>::max(), 2, cache));
  }
}

TEST(Iommu, NeighboursAreOne) {
  Iommu iommu;
  Iommu::Cache cache;
  ASSERT_EQ(iommu.map(0x2000, 0x1000), 0);
  ASSERT_EQ(iommu.map(0x1000, 0x1000), 0);
  EXPECT_TRUE(iommu.allows(0x1800, 0x1000, cache));
  ASSERT_EQ(iommu.unmap(0x2000, 0x1000), 0);
  EXPECT_FALSE(iommu.allows(0x1800, 0x1000, cache));
  EXPECT_TRUE(iommu.allows(0x1800, 0x800, cache));
}

TEST(Iommu, RefusesWhatCannotBeMapped) {
  Iommu iommu;
  EXPECT_EQ(iommu.map(0x1000, 0), -EINVAL);
  EXPECT_EQ(iommu.map(std::numeric_limits<std::uintptr_t>::max() - 10, 100), -EINVAL);
  ASSERT_EQ(iommu.map(0x1000, 0x1000), 0);
  EXPECT_EQ(iommu.map(0x1000, 0x1000), -EEXIST);
  EXPECT_EQ(iommu.map(0x800, 0x801), -EEXIST);
  EXPECT_EQ(iommu.map(0x1fff, 1), -EEXIST);
  EXPECT_EQ(iommu.map(0x800, 0x800), 0);
  EXPECT_EQ(iommu.unmap(0x800, 0x1800), -ENOENT);
  EXPECT_EQ(iommu.unmap(0x1000, 0x800), -ENOENT);
  EXPECT_EQ(iommu.unmap(0x1000, 0x1000), 0);
  EXPECT_EQ(iommu.unmap(0x1000, 0x1000), -ENOENT);
}

/// Against a bit a page.
WARPLINE_PROPERTY(Iommu, IsASetOfBytes, ()) {
  constexpr std::uint64_t kPages = 64;
  constexpr std::uint64_t kBase = 1 << 20;
  Iommu iommu;
  Iommu::Cache cache;
  std::map<std::uint64_t, std::uint64_t> mapped;  // begin, length
  bool page[kPages] = {};
  const auto steps = *rc::gen::container<std::vector<std::tuple<bool, std::uint8_t, std::uint8_t, std::uint8_t>>>(
      rc::gen::arbitrary<std::tuple<bool, std::uint8_t, std::uint8_t, std::uint8_t>>());
  for (const auto& [maps, first, count, probe] : steps) {
    const std::uint64_t begin = first % kPages;
    const std::uint64_t length = 1 + count % 6;
    if (maps && begin + length <= kPages) {
      bool free = true;
      for (std::uint64_t i = begin; i < begin + length; ++i) free = free && !page[i];
      RC_ASSERT(iommu.map(kBase + begin, length) == (free ? 0 : -EEXIST));
      if (free) mapped[begin] = length;
      for (std::uint64_t i = begin; free && i < begin + length; ++i) page[i] = true;
    } else if (const auto found = mapped.find(begin); found != mapped.end()) {
      RC_ASSERT(iommu.unmap(kBase + begin, found->second) == 0);
      for (std::uint64_t i = begin; i < begin + found->second; ++i) page[i] = false;
      mapped.erase(found);
    } else {
      RC_ASSERT(iommu.unmap(kBase + begin, length) == -ENOENT);
    }
    const std::uint64_t from = probe % kPages;
    for (std::uint64_t to = from + 1; to <= kPages; ++to) {
      bool all = true;
      for (std::uint64_t i = from; i < to; ++i) all = all && page[i];
      RC_ASSERT(iommu.allows(kBase + from, static_cast<std::uint32_t>(to - from), cache) == all);
    }
  }
}

TEST(Iommu, IsReadWhileItChanges) {
  Iommu iommu;
  ASSERT_EQ(iommu.map(0x1000, 0x1000), 0);
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    for (int i = 0; i < 500; ++i) {
      EXPECT_EQ(iommu.map(0x2000, 0x1000), 0);
      EXPECT_EQ(iommu.unmap(0x2000, 0x1000), 0);
    }
    stop = true;
  });
  Iommu::Cache cache;
  std::uint64_t refused = 0;
  while (!stop) {
    refused += iommu.allows(0x1000, 64, cache) ? 0 : 1;
    static_cast<void>(iommu.allows(0x1fff, 2, cache));
  }
  changer.join();
  EXPECT_EQ(refused, 0U);
  EXPECT_FALSE(iommu.allows(0x1fff, 2, cache));
}

}  // namespace
}  // namespace warpline::vnic
