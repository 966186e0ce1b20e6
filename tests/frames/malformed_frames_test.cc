// SPDX-License-Identifier: Apache-2.0
#include "frames/malformed_frames.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "warpline/base/random.h"
#include "warpline/packet/frame_testing.h"
#include "warpline/packet/responder.h"

namespace warpline {
namespace {

class MalformedFrames : public testing::TestWithParam<MalformedFrame> {};

std::vector<std::uint32_t> random_cuts(Random& random, std::size_t length) {
  std::vector<std::uint32_t> cuts(random.below(kMaxSegments));
  for (std::uint32_t& cut : cuts) cut = static_cast<std::uint32_t>(random.below(length / 3 + 2));
  return cuts;
}

TEST_P(MalformedFrames, IsDroppedForItsReason) {
  packet::SegmentedFrame frame(GetParam().bytes);
  EXPECT_EQ(name(packet::verdict_of(frame.ref())), name(GetParam().verdict));
}

TEST_P(MalformedFrames, IsDroppedForTheSameReasonHoweverItIsCut) {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    packet::SegmentedFrame frame(GetParam().bytes, random_cuts(random, GetParam().bytes.size()));
    ASSERT_EQ(name(packet::verdict_of(frame.ref())), name(GetParam().verdict));
  }
}

TEST_P(MalformedFrames, IsNeverAnswered) {
  const packet::Responder responders[] = {
      packet::Responder(packet::kTestDestinationMac, {packet::kTestDestinationV4, 24}),
      packet::Responder(packet::kTestDestinationMac, {packet::kTestDestinationV6, 64})};
  for (const packet::Responder& responder : responders) {
    packet::SegmentedFrame frame(GetParam().bytes);
    EXPECT_FALSE(responder.answer(frame.ref()));
    EXPECT_EQ(frame.bytes(), GetParam().bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, MalformedFrames, testing::ValuesIn(malformed_frames()),
                         [](const auto& instance) { return instance.param.name; });

TEST(MalformedFramesCorpus, HasOneOrMoreForEveryReasonAndNoNameTwice) {
  std::set<std::string> names;
  std::map<Verdict, int> reasons;
  for (const MalformedFrame& frame : malformed_frames()) {
    EXPECT_TRUE(names.insert(frame.name).second) << frame.name;
    EXPECT_FALSE(frame.bytes.empty()) << frame.name;
    EXPECT_LE(frame.bytes.size(), 1514U) << frame.name;
    ++reasons[frame.verdict];
  }
  EXPECT_GE(names.size(), 110U);
  for (int reason = static_cast<int>(Verdict::vlan_truncated); reason <= static_cast<int>(Verdict::tcp_checksum);
       ++reason) {
    EXPECT_GT(reasons[static_cast<Verdict>(reason)], 0) << name(static_cast<Verdict>(reason));
  }
  EXPECT_GT(reasons[Verdict::runt], 0);
}

}  // namespace
}  // namespace warpline
