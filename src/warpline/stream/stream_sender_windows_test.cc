// SPDX-License-Identifier: Apache-2.0
// How much a sender sends into the windows of its peers, and when it asks for them.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "warpline/stream/stream_sender_fixture_testing.h"

namespace warpline::stream {
namespace {

using testing::milliseconds;
using testing::SenderTest;
using testing::SentFrame;

constexpr std::uint32_t kWindowSegment = 1448;  // of 1500 bytes of MTU with timestamps

/// RFC 9293, 3.8.6 (MUST-1): 65,535 is no negative number.
TEST_P(SenderTest, TreatsTheWindowAsUnsigned) {
  SenderSettings settings = sender_settings();
  settings.congestion = CongestionKind::fixed;
  use(settings);
  peer_.scaled = false;
  const ConnectionId id = open();
  sender_.offer(id, 1 << 20);
  EXPECT_EQ(frames().size(), 65'535 / kWindowSegment);
}

/// RFC 7323, 2.3.
TEST_P(SenderTest, ScalesWindowsByFourteenAtMost) {
  peer_.scale = 15;
  peer_.header().tcp.window = 1;
  const ConnectionId id = open();
  EXPECT_EQ(sender_.view(id)->peer_window, 1U) << "of a SYN (2.2)";
  peer_.acknowledge(0, now_);
  EXPECT_EQ(sender_.view(id)->peer_window, 1U << 14);
}

TEST_P(SenderTest, NeverSendsMoreThanTheWindow) {
  const ConnectionId id = open();
  peer_.header().tcp.window = 1000 / 16;  // scaled by 2^4: 992
  peer_.acknowledge(0, now_);
  sender_.offer(id, 1 << 20);
  std::uint64_t sent = 0;
  for (const SentFrame& frame : frames()) sent += frame.payload.size();
  EXPECT_LE(sent, 992U);
  peer_.header().tcp.window = 0xffff;
  peer_.acknowledge(sent, now_);
  sent = 0;
  for (const SentFrame& frame : frames()) sent += frame.payload.size();
  EXPECT_GE(sent, 9U * kWindowSegment);  // what congestion control allows
  EXPECT_LE(sent, 12U * kWindowSegment);
}

/// RFC 9293, 3.8.6.1 (SHLD-29, SHLD-30).
TEST_P(SenderTest, AsksAClosedWindowAfterATimeoutThenEverMoreRarely) {
  const ConnectionId id = open();
  peer_.header().tcp.window = 0;
  peer_.acknowledge(0, now_);
  sender_.offer(id, 100);
  EXPECT_TRUE(frames().empty());
  // The round trip is 1 ms, so the smallest timeout is the first; none is larger than the largest.
  for (const std::int64_t wait_ms : {200, 400, 800, 1600, 3200, 6400, 12'800, 25'600, 51'200, 60'000, 60'000}) {
    wait(milliseconds(wait_ms - 15));
    EXPECT_TRUE(frames().empty()) << wait_ms;
    wait(milliseconds(16));
    EXPECT_EQ(frames().size(), 1U) << wait_ms;
    peer_.acknowledge(0, now_);
  }
}

TEST_P(SenderTest, AsksAClosedWindowAsLongAsItTakes) {
  const ConnectionId id = open();
  peer_.header().tcp.window = 0;
  peer_.acknowledge(0, now_);
  sender_.offer(id, 5000);
  EXPECT_TRUE(frames().empty());
  std::uint32_t probes = 0;
  for (int i = 0; i < 2000; ++i) {  // longer than the user timeout
    wait(milliseconds(1000));
    for (const SentFrame& frame : frames()) {
      EXPECT_TRUE(frame.payload.empty());
      EXPECT_EQ(frame.tcp().sequence + 1, peer_.number(0));
      ++probes;
      peer_.acknowledge(0, now_);
    }
  }
  EXPECT_GE(probes, 30U);
  EXPECT_LE(probes, 50U);  // they become rarer
  EXPECT_EQ(sender_.view(id)->state, SendState::open);
  peer_.header().tcp.window = 0xffff;
  peer_.acknowledge(0, now_);
  EXPECT_EQ(frames().size(), 4U);
}

TEST_P(SenderTest, SendsNoSmallSegmentsIntoASmallWindow) {
  const ConnectionId id = open();
  sender_.offer(id, 1 << 20);
  const std::size_t first = frames().size();
  peer_.header().tcp.window = 16 / 16;
  peer_.acknowledge(first * kWindowSegment, now_);
  EXPECT_TRUE(frames().empty());
  wait(milliseconds(99));
  EXPECT_TRUE(frames().empty());
  wait(milliseconds(901));  // RFC 9293, 3.8.6.2.1: it waits between 0.1 and 1 s
  const std::vector<SentFrame> sent = frames();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].payload.size(), 16U);
}

/// RFC 9293, 3.8.6.2.1 (3): at least half of the largest window that there was.
TEST_P(SenderTest, SendsHalfOfTheLargestWindow) {
  peer_.scaled = false;
  peer_.header().tcp.window = 1000;
  const ConnectionId id = open();
  sender_.offer(id, 10'000);
  std::vector<SentFrame> sent = frames();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].payload.size(), 1000U);
  peer_.header().tcp.window = 499;
  peer_.acknowledge(1000, now_);
  EXPECT_TRUE(frames().empty());
  peer_.header().tcp.window = 500;
  peer_.acknowledge(1000, now_);
  sent = frames();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].payload.size(), 500U);
}

TEST_P(SenderTest, ToleratesAWindowThatShrinks) {
  const ConnectionId id = open();
  sender_.offer(id, 10 * kWindowSegment);
  (void)frames();
  peer_.header().tcp.window = 0;
  peer_.acknowledge(kWindowSegment, now_);
  wait(milliseconds(2000));
  EXPECT_EQ(offsets(frames()).front(), kWindowSegment);
  EXPECT_EQ(sender_.view(id)->state, SendState::open);
}

/// RFC 9293, 3.8.6 (SHLD-15, SHLD-17): nothing new is sent, and the connection is not given up.
TEST_P(SenderTest, StaysOpenAsLongAsAWindowThatShrankIsAnswered) {
  const ConnectionId id = open();
  sender_.offer(id, 20 * kWindowSegment);
  EXPECT_EQ(frames().size(), 10U);
  peer_.header().tcp.window = 0;
  peer_.acknowledge(kWindowSegment, now_);
  for (int second = 0; second < 1000; ++second) {
    wait(milliseconds(1000));
    for (const SentFrame& again : frames()) {
      EXPECT_LT(offset_of(again), 10U * kWindowSegment);
      peer_.acknowledge(kWindowSegment, now_);
    }
  }
  EXPECT_EQ(sender_.view(id)->state, SendState::open);
  peer_.header().tcp.window = 0xffff;
  peer_.acknowledge(10 * kWindowSegment, now_);
  EXPECT_EQ(offsets(frames()).front(), 10U * kWindowSegment);
}

TEST_P(SenderTest, HoldsShortSegmentsBackIfAsked) {
  SenderSettings settings = sender_settings();
  settings.nagle = true;
  use(settings);
  const ConnectionId id = open();
  sender_.offer(id, 100);
  EXPECT_EQ(frames().size(), 1U);
  sender_.offer(id, 100);
  EXPECT_TRUE(frames().empty());
  peer_.acknowledge(100, now_);
  EXPECT_EQ(offsets(frames()), (std::vector<std::uint64_t>{100}));
}

TEST_P(SenderTest, OldAcknowledgementsDoNotMoveTheWindow) {
  const ConnectionId id = open();
  sender_.offer(id, 3000);
  (void)frames();
  peer_.acknowledge(3000, now_);
  peer_.header().tcp.window = 1;
  peer_.acknowledge(1000, now_);
  EXPECT_EQ(sender_.view(id)->peer_window, 0xffffU << 4);
}

}  // namespace
}  // namespace warpline::stream
