// SPDX-License-Identifier: Apache-2.0
#include "warpline/traffic/sequence_window.h"

#include <gtest/gtest.h>

#include <set>

#include "warpline/base/property_testing.h"
#include "warpline/base/random.h"

namespace warpline::traffic {
namespace {

using Arrival = SequenceWindow::Arrival;

/// What SequenceWindow says, kept in a set.
class ReferenceWindow {
 public:
  explicit ReferenceWindow(std::uint64_t size) : size_(size) {}

  Arrival mark(std::uint64_t sequence) {
    if (!seen_.empty() && sequence + size_ <= *seen_.rbegin()) return Arrival::late;
    return seen_.insert(sequence).second ? Arrival::fresh : Arrival::duplicate;
  }

 private:
  std::uint64_t size_;
  std::set<std::uint64_t> seen_;
};

WARPLINE_PROPERTY(SequenceWindow, SaysWhatASetSays, ()) {
  const std::uint64_t size = std::uint64_t{64} << *rc::gen::inRange(0, 4);
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  SequenceWindow window(size);
  ReferenceWindow reference(size);
  std::uint64_t at = 0;
  for (int i = 0; i < 3000; ++i) {
    switch (random.below(8)) {
      case 0:
        at += random.below(3 * size);
        break;
      case 1:
      case 2:
        at -= std::min(at, random.below(2 * size));
        break;
      default:
        at += random.below(3);
    }
    RC_ASSERT(window.mark(at) == reference.mark(at));
  }
}

TEST(SequenceWindow, EdgesOfTheWindow) {
  SequenceWindow window(64);
  EXPECT_EQ(window.end(), 0U);
  EXPECT_EQ(window.mark(100), Arrival::fresh);
  EXPECT_EQ(window.end(), 101U);
  EXPECT_EQ(window.mark(37), Arrival::fresh);
  EXPECT_EQ(window.mark(36), Arrival::late);
  EXPECT_EQ(window.mark(37), Arrival::duplicate);
  EXPECT_EQ(window.mark(101), Arrival::fresh);
  EXPECT_EQ(window.mark(37), Arrival::late);
}

TEST(SequenceWindow, FindsDuplicatesAMillionBack) {
  constexpr std::uint64_t kSize = 1 << 20;
  SequenceWindow window(kSize);
  for (std::uint64_t i = 0; i < 3 * kSize; ++i) ASSERT_EQ(window.mark(i), Arrival::fresh);
  EXPECT_EQ(window.mark(2 * kSize), Arrival::duplicate);
  EXPECT_EQ(window.mark(2 * kSize - 1), Arrival::late);
}

}  // namespace
}  // namespace warpline::traffic
