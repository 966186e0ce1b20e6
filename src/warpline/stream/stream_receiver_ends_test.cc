// SPDX-License-Identifier: Apache-2.0
// What is left of connections that have ended, in a receiver without a lane: no timer, no reply that is owed, no place.
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "warpline/stream/stream_receiver_fixture_testing.h"

namespace warpline::stream {
namespace {

using testing::consume;
using testing::kNoDeadline;
using testing::Peer;
using testing::ReceiverTest;
using testing::Reply;
using testing::small_settings;

class ReceiverEnds : public ReceiverTest {
 protected:
  /// A connection sends bytes and a reset in one burst, and the application closes it.
  void reset_behind_bytes() {
    const ConnectionId id = open();
    peer_.send(0, 100, now_);
    peer_.send_raw(peer_.sequence(100), packet::kTcpRst, {}, now_);
    receiver_.end_burst(now_);
    const auto event = receiver_.poll();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->state, ConnectionState::reset);
    EXPECT_EQ(consume(receiver_, id), 100U);
    receiver_.close(id, now_);
    EXPECT_EQ(receiver_.connections(), 0U);
    EXPECT_EQ(receiver_.next_deadline(), kNoDeadline) << "a delayed acknowledgement is due to nobody";
  }
  /// Lets time pass up to a deadline at a time, as long as there is one. Returns how often that was.
  int pass_deadlines() {
    int times = 0;
    for (; receiver_.next_deadline() != kNoDeadline && times < 1000; ++times) {
      now_ = std::max(Nanos{now_.value + 1'000'000}, receiver_.next_deadline());
      receiver_.advance(now_);
      (void)take_replies();
    }
    return times;
  }
};

TEST_F(ReceiverEnds, LeaveNoTimerBehindBytesAndAResetInOneBurst) { reset_behind_bytes(); }

TEST_F(ReceiverEnds, LeaveNoTimerToAHandshakeThatIsNotFinished) {
  reset_behind_bytes();
  if (HasFailure()) return;
  now_.value += 10'000'000;
  Peer next(receiver_, 40001, 9);  // it has the place of the first
  next.send_syn(now_);
  receiver_.end_burst(now_);
  EXPECT_EQ(receiver_.connections(), 1U);
  EXPECT_LT(pass_deadlines(), 100);
  EXPECT_EQ(receiver_.connections(), 0U);
}

TEST_F(ReceiverEnds, LeaveNoTimerToAConnectionThatEndsInOrder) {
  reset_behind_bytes();
  if (HasFailure()) return;
  now_.value += 10'000'000;
  Peer next(receiver_, 40001, 9);
  const ConnectionId id = open(next);
  next.send(0, 10, now_, packet::kTcpAck | packet::kTcpFin);
  receiver_.end_burst(now_);
  receiver_.close(id, now_);
  (void)take_replies();
  ++next.acknowledgement;
  next.send(11, 0, now_);
  receiver_.end_burst(now_);
  EXPECT_EQ(receiver_.connections(), 0U);
  EXPECT_EQ(pass_deadlines(), 0);
}

TEST_F(ReceiverEnds, LeaveNoTimerBehindBytesAndAnAbortInOneTurn) {
  const ConnectionId id = open();
  peer_.send(0, 100, now_);
  receiver_.abort(id, now_);
  EXPECT_EQ(finish_burst().size(), 1U);
  EXPECT_EQ(receiver_.next_deadline(), kNoDeadline);
}

TEST_F(ReceiverEnds, ResetEachPeerHoweverManyAreAbortedAtOnce) {
  ReceiverSettings settings = small_settings();
  settings.connections = settings.half_open = 600;
  settings.discards = true;
  use(settings);
  std::vector<ConnectionId> opened;
  std::deque<Peer> peers;
  for (std::uint16_t i = 0; i < settings.connections; ++i) {
    opened.push_back(open(peers.emplace_back(receiver_, static_cast<std::uint16_t>(20'000 + i), i)));
  }
  Peer stranger(receiver_, 10'000, 1);
  stranger.header().tcp.destination_port = 9;
  for (int i = 0; i < 400; ++i) stranger.send_syn(now_);  // their answers do not take the room of the resets
  (void)receiver_.poll();
  for (const ConnectionId id : opened) receiver_.abort(id, now_);
  std::size_t resets = 0;
  for (const Reply& reply : take_replies()) {
    const std::uint16_t port = reply.tcp().destination_port;
    if (port < 20'000 || !reply.has(packet::kTcpRst)) continue;
    EXPECT_EQ(reply.tcp().sequence, peers[port - 20'000U].acknowledgement);
    ++resets;
  }
  EXPECT_EQ(resets, opened.size());
  EXPECT_EQ(receiver_.counters().aborted.get(), opened.size());
}

}  // namespace
}  // namespace warpline::stream
