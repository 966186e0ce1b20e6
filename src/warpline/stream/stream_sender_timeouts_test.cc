// SPDX-License-Identifier: Apache-2.0
// When a sender gives a connection up.
#include <gtest/gtest.h>

#include <optional>

#include "warpline/stream/stream_sender_fixture_testing.h"

namespace warpline::stream {
namespace {

using testing::milliseconds;
using testing::SenderTest;
using testing::SentFrame;

/// RFC 6298, 2.1 and 5.5: after one second, then after twice as long each time.
TEST_P(SenderTest, SendsItsSynAgainAfterOneSecondThenEverLater) {
  connect();
  EXPECT_EQ(frames().size(), 1U);
  for (const std::int64_t seconds : {1, 2, 4, 8, 16}) {
    wait(milliseconds(1000 * seconds - 5));
    EXPECT_TRUE(frames().empty()) << seconds;
    wait(milliseconds(5));
    EXPECT_EQ(frames().size(), 1U) << seconds;
  }
}

/// RFC 6298, 2.2 and 2.3: 3 R after the first sample R; after another one R' 7/8 R + 1/8 R' + 4 (3/8 R + 1/4 |R - R'|).
TEST_P(SenderTest, TimesOutByTheRoundTripsThatItMeasured) {
  peer_.selective = peer_.timestamps = false;  // without probes of the tail
  const ConnectionId id = connect();
  peer_.take_syn(frames().at(0));
  wait(milliseconds(500));
  peer_.answer_syn(now_);
  sender_.offer(id, 100);
  EXPECT_EQ(frames().size(), 1U);
  wait(milliseconds(100));
  peer_.acknowledge(100, now_);
  sender_.offer(id, 100);
  EXPECT_EQ(frames().size(), 1U);
  wait(milliseconds(1595));
  EXPECT_TRUE(frames().empty());
  wait(milliseconds(10));
  EXPECT_EQ(frames().size(), 1U);
  const ConnectionId second = connect();
  testing::PeerOfSender other = another_peer();
  other.selective = other.timestamps = false;
  other.take_syn(frames().at(0));
  wait(milliseconds(500));
  other.answer_syn(now_);
  sender_.offer(second, 100);
  EXPECT_EQ(frames().size(), 1U);
  const std::uint64_t again = sender_.counters().retransmitted.get();
  wait(milliseconds(1495));
  (void)frames();
  EXPECT_EQ(sender_.counters().retransmitted.get(), again);
  wait(milliseconds(10));
  (void)frames();
  EXPECT_EQ(sender_.counters().retransmitted.get(), again + 1);
}

TEST_P(SenderTest, GivesUpOnAPeerThatDoesNotAnswer) {
  connect();
  std::uint32_t syns = 0;
  for (int i = 0; i < 179; ++i) {
    for (const SentFrame& frame : frames()) syns += frame.has(packet::kTcpSyn) ? 1 : 0;
    wait(milliseconds(1000));
  }
  EXPECT_EQ(last_state(), std::nullopt);
  wait(milliseconds(2000));
  EXPECT_EQ(last_state(), SendState::timed_out);
  EXPECT_EQ(syns, 8U);
  EXPECT_EQ(sender_.connections(), 0U);
}

TEST_P(SenderTest, GivesUpOnAPeerThatFallsSilent) {
  const ConnectionId id = open();
  sender_.offer(id, 100);
  for (int i = 0; i < 299; ++i) {
    (void)frames();
    wait(milliseconds(1000));
  }
  EXPECT_EQ(last_state(), std::nullopt);
  wait(milliseconds(2000));
  EXPECT_EQ(last_state(), SendState::timed_out);
  EXPECT_FALSE(sender_.view(id));
}

/// RFC 9293, 3.8.6.1: a closed window is asked for as long as the peer answers (MUST-37), and no longer.
TEST_P(SenderTest, GivesUpOnAPeerThatClosesItsWindowAndFallsSilent) {
  for (const int answered : {0, 700}) {  // seconds
    testing::PeerOfSender peer = another_peer();
    const ConnectionId id = connect();
    peer.take_syn(frames().at(0));
    peer.answer_syn(now_);
    peer.header().tcp.window = 0;
    peer.acknowledge(0, now_);
    (void)frames();
    wait(milliseconds(1'000'000));  // nothing is to be sent, so nothing is missed
    EXPECT_EQ(last_state(), SendState::open);
    sender_.offer(id, 100);
    Nanos heard = now_;
    for (int second = 0; second < answered; ++second) {
      wait(milliseconds(1000));
      for (const SentFrame& probe : frames()) {
        EXPECT_TRUE(probe.payload.empty());
        peer.acknowledge(0, now_);
        heard = now_;
      }
    }
    while (now_.value - heard.value < milliseconds(299'000).value) {
      (void)frames();
      wait(milliseconds(500));
    }
    EXPECT_EQ(last_state(), std::nullopt) << answered;
    wait(milliseconds(2000));
    EXPECT_EQ(last_state(), SendState::timed_out) << answered;
    EXPECT_EQ(sender_.connections(), 0U);
  }
}

TEST_P(SenderTest, GivesUpAfterTheTimeOfThatConnection) {
  const ConnectionId id = open();
  EXPECT_FALSE(sender_.set_user_timeout(id, Nanos{0}, now_));
  EXPECT_TRUE(sender_.set_user_timeout(id, StreamSender::kNeverGivesUp, now_));
  sender_.offer(id, 100);
  for (int i = 0; i < 1000; ++i) {
    (void)frames();
    wait(milliseconds(1000));
  }
  EXPECT_EQ(last_state(), std::nullopt);
  // The next time at which it would send again is a minute away.
  EXPECT_TRUE(sender_.set_user_timeout(id, milliseconds(1'005'000), now_));
  wait(milliseconds(4000));
  EXPECT_EQ(last_state(), std::nullopt);
  wait(milliseconds(1500));
  EXPECT_EQ(last_state(), SendState::timed_out);
  EXPECT_FALSE(sender_.set_user_timeout(id, milliseconds(1000), now_));
}

TEST_P(SenderTest, GivesNoTimeToAConnectionThatHasFinished) {
  const ConnectionId id = open();
  sender_.close(id);
  (void)frames();
  peer_.acknowledge(1, now_);  // the FIN
  ASSERT_EQ(sender_.view(id)->state, SendState::finished);
  EXPECT_FALSE(sender_.set_user_timeout(id, milliseconds(50), now_));
}

TEST_P(SenderTest, GivesConnectionsTimesOfTheirOwn) {
  const ConnectionId id = open();
  const ConnectionId other = connect();
  EXPECT_TRUE(sender_.set_user_timeout(id, milliseconds(10'000), now_));
  EXPECT_TRUE(sender_.set_user_timeout(other, milliseconds(10'000), now_));
  sender_.offer(id, 100);
  for (int i = 0; i < 11; ++i) {
    (void)frames();
    wait(milliseconds(1000));
  }
  EXPECT_FALSE(sender_.view(id) && sender_.view(id)->state == SendState::open);
  // A SYN is sent for three minutes, whatever the application says of the time behind it.
  ASSERT_TRUE(sender_.view(other));
  EXPECT_EQ(sender_.view(other)->state, SendState::opening);
}

}  // namespace
}  // namespace warpline::stream
