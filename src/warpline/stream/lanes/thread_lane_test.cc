// SPDX-License-Identifier: Apache-2.0
// A receiver whose segments a thread takes: what is lent comes back once, and bytes are where they belong.
#include "warpline/stream/lanes/thread_lane.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/stream/lanes/lane_peer_testing.h"

namespace warpline::stream::testing {
namespace {

/// By the slots of its queues; 0: it has none.
class ThreadLanes : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(ThreadLanes, ReceiveAConnection) {
  const ReceiverSettings settings = lane_settings();
  const Nanos now{1'000'000'000};
  auto lane = make_thread_lane(lane_shape(settings, 16, 2, GetParam()));
  ASSERT_TRUE(lane.ok());
  auto made = StreamReceiver::create(settings, now, std::move(lane).value());
  ASSERT_TRUE(made.ok()) << made.error().message();
  StreamReceiver receiver = std::move(made).value();
  EXPECT_TRUE(receiver.has_lane());
  EXPECT_EQ(receiver.room(), 16U);
  Lender lender(receiver);
  const LanePeerFrames peer;
  lender.give(peer.make(0, 0, packet::kTcpSyn, 0));
  lender.settle(now);
  const std::vector<Reply> replies = replies_of(receiver, now);
  ASSERT_EQ(replies.size(), 1U);
  const std::uint32_t acknowledgement = replies[0].tcp().sequence + 1;
  // In one burst: the end of the handshake, bytes out of order, something else, and the end.
  lender.give(peer.make(1, acknowledgement, packet::kTcpAck, 0));
  lender.give(peer.make(1001, acknowledgement, packet::kTcpAck, 1000));
  lender.give(LentFrame(Lender::kOdd));
  lender.give(peer.make(1, acknowledgement, packet::kTcpAck, 1000));
  lender.give(peer.make(2001, acknowledgement, packet::kTcpAck | packet::kTcpFin, 500));
  lender.settle(now);
  EXPECT_EQ(lender.lent(), 0U);
  EXPECT_EQ(lender.taken, 1);
  auto event = receiver.poll();
  // A thread that lost its processor meanwhile has reported the burst in two parts.
  while (event && event->state == ConnectionState::open) event = receiver.poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->state, ConnectionState::finished);
  EXPECT_EQ(event->readable, 2500U);
  const auto view = receiver.view(event->connection);
  ASSERT_TRUE(view);
  for (std::size_t i = 0; i < view->bytes.size(); ++i) ASSERT_EQ(view->bytes[i], pattern_at(i)) << i;
  EXPECT_TRUE(receiver.release(event->connection, 2500));
  receiver.close(event->connection, now);
  const std::vector<Reply> ends = replies_of(receiver, now);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_TRUE(ends[0].has(packet::kTcpFin | packet::kTcpAck));
  EXPECT_EQ(ends[0].tcp().acknowledgement, 2502U);
  lender.give(peer.make(2502, acknowledgement + 1, packet::kTcpAck, 0));
  lender.settle(now);
  EXPECT_EQ(receiver.connections(), 0U);
  EXPECT_EQ(receiver.counters().bytes.get(), 2500U);
  EXPECT_EQ(receiver.counters().get(Disposition::stored), 3U);
  receiver.stop_lane();
  EXPECT_FALSE(receiver.lane_failure(now));
}

INSTANTIATE_TEST_SUITE_P(Slots, ThreadLanes, ::testing::Values(0, 16));

TEST(ThreadLane, GivesNoRoomWhileFramesAreNotTakenBack) {
  const ReceiverSettings settings = lane_settings();
  const Nanos now{1};
  auto made = StreamReceiver::create(settings, now, *make_thread_lane(lane_shape(settings, 16, 2)));
  ASSERT_TRUE(made.ok());
  StreamReceiver receiver = std::move(made).value();
  std::array<std::uint8_t, 60> bytes{};
  Segment segment{bytes.data(), bytes.size(), 0, Verdict::forward};
  std::uint32_t given = 0;
  for (int turns = 0; turns < 100'000 && given < 64; ++turns) {
    for (; receiver.room() != 0; ++given) receiver.give(frame_at(&segment), false, &segment);
    receiver.end_burst(now);
    if (!receiver.collect(nullptr, now)) std::this_thread::yield();
  }
  EXPECT_EQ(given, 64U);  // twice what two bursts have
  while (receiver.in_flight() != 0) (void)receiver.collect(nullptr, now);
  EXPECT_EQ(receiver.room(), 0U);
  std::array<void*, 100> tokens;
  EXPECT_EQ(receiver.take_back(tokens), 64U);
  EXPECT_EQ(receiver.room(), 16U);
}

TEST(ThreadLane, IsRefusedIfItDoesNotFit) {
  const ReceiverSettings settings = lane_settings();
  LaneShape shape = lane_shape(settings);
  const auto refused = [&] { return !StreamReceiver::create(settings, Nanos{1}, *make_thread_lane(shape)).ok(); };
  EXPECT_FALSE(refused());
  shape.connections = 2;
  EXPECT_TRUE(refused());
  shape = lane_shape(settings);
  shape.ring_bytes *= 2;
  EXPECT_TRUE(refused());
  shape = lane_shape(settings);
  shape.burst = 8;
  EXPECT_TRUE(refused());
  EXPECT_FALSE(make_thread_lane(lane_shape(settings, 16, 2, 17)).ok()) << "queues are a power of two";
}

}  // namespace
}  // namespace warpline::stream::testing
