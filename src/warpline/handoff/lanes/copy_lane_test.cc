// SPDX-License-Identifier: Apache-2.0
#include "warpline/handoff/lanes/copy_lane.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "warpline/handoff/inline_engine.h"
#include "warpline/handoff/lanes/copy_lane_testing.h"
#include "warpline/handoff/thread_engine.h"

namespace warpline::handoff {
namespace {

using namespace testing;

TEST(CopyLane, CopiesOnThreads) {
  Pages from(kCopies * kCopyRoom);
  Pages to(kCopies * kCopyRoom);
  const auto lane = CopyLane<ThreadEngine<CopyPieces>>::create([](BurstRing& ring) {
    return std::make_unique<ThreadEngine<CopyPieces>>(ring, CopyPieces{},
                                                      std::vector<LanePlacement>(3, {std::nullopt, true}), "copies");
  });
  ASSERT_TRUE(lane.ok());
  ASSERT_TRUE((*lane)->start().ok());
  expect_copies(**lane, from, to);
}

TEST(CopyLane, HasRoomForItsBatchesAndNoMore) {
  using Lane = CopyLane<InlineEngine<CopyPieces>>;
  const auto lane = Lane::create(
      [](const BurstRing& ring) { return std::make_unique<InlineEngine<CopyPieces>>(ring, CopyPieces{}); });
  ASSERT_TRUE(lane.ok());
  ASSERT_TRUE((*lane)->start().ok());
  const char from = 'x';
  char to = 0;
  const TestCopy copy{&to, &from, 1};
  for (std::uint32_t i = 0; i < Lane::kBatches; ++i) EXPECT_TRUE((*lane)->submit(&copy, 1));
  EXPECT_FALSE((*lane)->submit(&copy, 1));
  EXPECT_EQ((*lane)->landed(), Lane::kBatches);
  EXPECT_TRUE((*lane)->submit(&copy, 1));
  EXPECT_EQ(to, 'x');
}

TEST(CopyLane, KeepsWhatIsSubmittedUntilItStarts) {
  using Lane = CopyLane<ThreadEngine<CopyPieces>>;
  const auto make = [](BurstRing& ring) {
    return std::make_unique<ThreadEngine<CopyPieces>>(ring, CopyPieces{},
                                                      std::vector<LanePlacement>(1, {std::nullopt, true}), "copies");
  };
  const char from = 'x';
  char to = 0;
  const TestCopy copy{&to, &from, 1};
  const auto begun = Lane::create(make);
  ASSERT_TRUE(begun.ok());
  EXPECT_TRUE((*begun)->submit(&copy, 1));
  EXPECT_EQ((*begun)->landed(), 0U);
  ASSERT_TRUE((*begun)->start().ok());
  while ((*begun)->landed() == 0) std::this_thread::yield();
  EXPECT_EQ(to, 'x');
  EXPECT_FALSE((*begun)->stopped());
  // One that never starts can be stopped all the same.
  const auto never = Lane::create(make);
  ASSERT_TRUE(never.ok());
  EXPECT_TRUE((*never)->submit(&copy, 1));
  (*never)->stop();
  EXPECT_TRUE((*never)->stopped());
  EXPECT_EQ((*never)->landed(), 0U);
}

}  // namespace
}  // namespace warpline::handoff
