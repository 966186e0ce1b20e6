// SPDX-License-Identifier: Apache-2.0
// Which round trips a sender measures, and what a SYN that was lost changes.
#include <gtest/gtest.h>

#include "warpline/stream/stream_sender_fixture_testing.h"

namespace warpline::stream {
namespace {

using testing::milliseconds;
using testing::SenderFixture;
using testing::SenderTest;
using testing::SentFrame;

constexpr std::uint32_t kWholeSegment = 1448;

class AmbiguousRoundTrips : public SenderFixture, public ::testing::WithParamInterface<bool> {};

/// RFC 6298, section 3: the acknowledgements of two segments are lost, so the first one is sent again. The round trip
/// of the second one contains the whole timeout.
TEST_P(AmbiguousRoundTrips, AreNotMeasured) {
  peer_.selective = false;
  peer_.timestamps = GetParam();
  const ConnectionId id = open();
  const std::uint64_t segment = GetParam() ? kWholeSegment : kWholeSegment + 12;
  std::uint64_t acknowledged = 0;
  for (int round = 0; round < 20; ++round) {
    sender_.offer(id, 2 * segment);
    ASSERT_FALSE(frames().empty());
    const std::uint64_t timeouts = sender_.counters().timeouts.get();
    while (sender_.counters().timeouts.get() == timeouts) {
      (void)frames();
      wait(milliseconds(1));
    }
    peer_.clock += 1000;
    for (const SentFrame& again : frames()) peer_.echo = again.segment.timestamp;
    now_.value += 1'000'000;
    acknowledged += 2 * segment;
    peer_.acknowledge(acknowledged, now_);
    ASSERT_EQ(sender_.view(id)->acknowledged, acknowledged);
    // The round trip is 1 ms. A timestamp may be one tick of 1 ms away.
    EXPECT_LE(sender_.view(id)->round_trip.value, 2'000'000) << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Timestamps, AmbiguousRoundTrips, ::testing::Bool());

/// RFC 7323, 4.1: a timestamp is measured only where SND.UNA advances.
TEST_P(SenderTest, MeasuresNoTimestampsOfSelectiveAcknowledgements) {
  const ConnectionId id = open();
  sender_.offer(id, 5 * kWholeSegment);
  (void)frames();
  const Nanos before = sender_.view(id)->round_trip;
  wait(milliseconds(3000));
  (void)frames();
  peer_.acknowledge(0, now_, {{kWholeSegment, 5 * kWholeSegment}});  // with the echo of the SYN
  EXPECT_EQ(sender_.view(id)->round_trip.value, before.value);
}

/// RFC 5681, 3.1: one segment. RFC 6298, 5.7: three seconds.
TEST_P(SenderTest, BeginsWithOneSegmentAndThreeSecondsIfItsSynWasLost) {
  peer_.selective = false;  // without probes of the tail
  const ConnectionId id = connect();
  (void)frames();
  wait(milliseconds(1500));
  const std::vector<SentFrame> syn = frames();
  ASSERT_EQ(syn.size(), 1U);
  peer_.take_syn(syn[0]);
  peer_.answer_syn(now_);
  sender_.offer(id, 20 * kWholeSegment);
  EXPECT_EQ(offsets(frames()), (std::vector<std::uint64_t>{0}));
  wait(milliseconds(2990));
  std::size_t again = offsets(frames()).size();
  EXPECT_EQ(sender_.counters().timeouts.get(), 1U);  // of the SYN
  wait(milliseconds(20));
  again += offsets(frames()).size();
  EXPECT_EQ(sender_.counters().timeouts.get(), 2U);
  EXPECT_GE(again, 1U);
}

/// A reset and the call cross by nature: nothing of the call remains behind, whether the event was taken or not.
TEST_P(SenderTest, GivesConnectionsThatHaveEndedNoTime) {
  for (const bool taken : {false, true}) {
    testing::PeerOfSender peer = another_peer();
    const ConnectionId id = connect();
    peer.take_syn(frames().at(0));
    peer.answer_syn(now_);
    (void)frames();
    sender_.offer(id, 1000);
    (void)frames();
    peer.send_plain(peer.next(), peer.number(0), packet::kTcpRst, now_);
    if (taken) {
      EXPECT_EQ(last_state(), SendState::reset);
    }
    EXPECT_FALSE(sender_.set_user_timeout(id, milliseconds(50), now_));
    EXPECT_EQ(sender_.next_deadline().value, StreamSender::kNeverGivesUp.value);
    EXPECT_EQ(last_state().has_value(), !taken);
    EXPECT_EQ(sender_.connections(), 0U);
  }
}

}  // namespace
}  // namespace warpline::stream
