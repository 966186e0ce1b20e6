// SPDX-License-Identifier: Apache-2.0
// What the receiver writes, and when it acknowledges what was read; with a lane that writes acknowledgements, whose
// they are.
#include <gtest/gtest.h>

#include <array>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "warpline/stream/internal/reply.h"
#include "warpline/stream/lanes/step_lane_testing.h"
#include "warpline/stream/stream_receiver_testing.h"

namespace warpline::stream {
namespace {

TEST(ReceiverReplies, AcknowledgeAtOnceWhatWasPushedAndRead) {
  const Nanos now = testing::milliseconds(1);
  StreamReceiver receiver = std::move(StreamReceiver::create(testing::small_settings(), now)).value();
  testing::Peer peer(receiver, 40000, 7);
  ASSERT_TRUE(peer.open(now));
  const ConnectionId id = receiver.poll()->connection;
  peer.send(0, 1000, now, packet::kTcpAck | packet::kTcpPsh);
  receiver.end_burst(now);
  EXPECT_TRUE(testing::replies_of(receiver, now).empty());
  ASSERT_TRUE(receiver.release(id, 999));
  EXPECT_TRUE(testing::replies_of(receiver, now).empty());
  ASSERT_TRUE(receiver.release(id, 1));
  const std::vector<testing::Reply> replies = testing::replies_of(receiver, now);
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().acknowledgement, peer.sequence(1000));
  peer.send(1000, 1000, now);
  receiver.end_burst(now);
  ASSERT_TRUE(receiver.release(id, 1000));
  EXPECT_TRUE(testing::replies_of(receiver, now).empty());  // more follows
}

TEST(ReceiverReplies, AreTheFramesThatThePacketRoomWrites) {
  const std::pair<IpAddress, IpAddress> ends[] = {
      {*parse_ip("10.0.0.1"), *parse_ip("192.0.2.77")},
      {*parse_ip("fd00::1"), *parse_ip("2001:db8:1:2:3:4:5:6")},
  };
  for (const auto& [local, remote] : ends) {
    for (std::uint32_t options = 0; options <= 40; options += 4) {
      packet::TcpFrame frame;
      frame.source_mac = testing::kOurMac;
      frame.destination_mac = testing::kPeerMac;
      frame.source = local;
      frame.destination = remote;
      frame.tcp.source_port = 5001;
      frame.tcp.destination_port = 40'000;
      frame.tcp.sequence = 0xfffffffe;
      frame.tcp.acknowledgement = 77 + options;
      frame.tcp.flags = packet::kTcpAck;
      frame.tcp.window = 4711;
      frame.tcp.options_length = static_cast<std::uint8_t>(options);
      for (std::uint32_t i = 0; i < options; ++i) frame.tcp.options[i] = static_cast<std::uint8_t>(3 * i + 1);
      std::array<std::uint8_t, kLongestReply> expected{};
      const std::uint32_t length = packet::emit(frame, expected, 0, {});
      ASSERT_NE(length, 0U);
      ConnectionKey key;
      store_words(local, key.local);
      store_words(remote, key.remote);
      key.local_port = 5001;
      key.remote_port = 40'000;
      Reply reply = reply_to(key, testing::kPeerMac, testing::kOurMac);
      reply.tcp = frame.tcp;
      std::array<std::uint8_t, kLongestReply> written{};
      EXPECT_EQ(emit(reply, written.data()), length);
      EXPECT_EQ(written, expected);
    }
  }
}

/// A receiver whose lane acknowledges, and takes bursts when the test says so.
class LaneReplies : public ::testing::Test, private OtherFrames {
 protected:
  static constexpr std::uint32_t kSegment = 1000;

  LaneReplies() {
    ReceiverSettings settings = testing::small_settings();
    settings.lane_acknowledges = true;
    auto lane = std::move(testing::StepLane::create(lane_shape(settings, 16, 4))).value();
    lane_ = lane.get();
    receiver_.emplace(std::move(StreamReceiver::create(settings, now_, std::move(lane))).value());
  }

  void SetUp() override {
    give(0, 0, packet::kTcpSyn);
    settle();
    const std::vector<testing::Reply> replies = testing::replies_of(*receiver_, now_);
    ASSERT_EQ(replies.size(), 1U);
    acknowledgement_ = replies[0].tcp().sequence + 1;
    give(1, 0);
    settle();
  }

  void TearDown() override { receiver_->stop_lane(); }

  void give(std::uint32_t sequence, std::uint32_t length, std::uint8_t flags = packet::kTcpAck) {
    packet::TcpFrame frame;
    frame.destination_mac = testing::kOurMac;
    frame.source_mac = testing::kPeerMac;
    frame.source = Ipv4Address{{10, 0, 0, 2}};
    frame.destination = Ipv4Address{{10, 0, 0, 1}};
    frame.tcp.source_port = 40'000;
    frame.tcp.destination_port = testing::kPort;
    frame.tcp.sequence = sequence;
    frame.tcp.acknowledgement = flags == packet::kTcpSyn ? 0 : acknowledgement_;
    frame.tcp.flags = flags;
    std::vector<std::uint8_t>& bytes = frames_.emplace_back(packet::tcp_headers_length(frame) + length);
    packet::ChecksumSum sum;
    sum.add(bytes.data() + packet::tcp_headers_length(frame), length);
    static_cast<void>(packet::emit(frame, bytes, length, sum));
    Segment segment{bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0, Verdict::forward};
    receiver_->give(frame_at(&segment), false, &bytes);
  }
  void give_segments(std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t i = first; i < first + count; ++i) {
      if (receiver_->room() == 0) receiver_->end_burst(now_);
      give(1 + i * kSegment, kSegment);
    }
  }
  void settle() {
    while (receiver_->in_flight() != 0) {
      receiver_->end_burst(now_);
      lane_->stop({});
      (void)receiver_->collect(this, now_);
    }
  }
  [[nodiscard]] std::uint64_t by_lane() const { return receiver_->counters().lane_acknowledgements.get(); }

  Nanos now_ = testing::milliseconds(1);
  std::optional<StreamReceiver> receiver_;
  testing::StepLane* lane_ = nullptr;

 private:
  bool take(FrameRef, void*) override { return false; }

  std::uint32_t acknowledgement_ = 0;
  std::list<std::vector<std::uint8_t>> frames_;
};

TEST_F(LaneReplies, AreSentAsTheLaneWroteThem) {
  give_segments(0, 2);
  settle();
  const std::vector<testing::Reply> replies = testing::replies_of(*receiver_, now_);
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().acknowledgement, 1 + 2 * kSegment);
  EXPECT_EQ(by_lane(), 1U);
  give_segments(2, 1);
  settle();
  EXPECT_TRUE(testing::replies_of(*receiver_, now_).empty());
  now_ = testing::milliseconds(100);
  receiver_->advance(now_);
  EXPECT_EQ(testing::replies_of(*receiver_, now_).size(), 1U);  // what was delayed is written here
  EXPECT_EQ(by_lane(), 1U);
}

TEST_F(LaneReplies, AreNotSentWhereThePeerWasToldSomethingSince) {
  give_segments(0, 1);
  settle();
  give_segments(1, 1);
  receiver_->end_burst(now_);
  now_ = testing::milliseconds(100);
  receiver_->advance(now_);
  EXPECT_EQ(testing::replies_of(*receiver_, now_).size(), 1U);
  settle();  // the lane, which did not know of that, saw two segments to be acknowledged
  EXPECT_TRUE(testing::replies_of(*receiver_, now_).empty());
  give_segments(2, 2);
  settle();
  const std::vector<testing::Reply> replies = testing::replies_of(*receiver_, now_);
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().acknowledgement, 1 + 4 * kSegment);
  EXPECT_EQ(by_lane(), 1U);
}

TEST_F(LaneReplies, GiveWayToWhatTellsMore) {
  const ConnectionId id = receiver_->poll()->connection;
  give_segments(0, 40);
  settle();
  EXPECT_EQ(testing::replies_of(*receiver_, now_).size(), 1U);
  EXPECT_EQ(by_lane(), 1U);
  give_segments(40, 2);
  settle();
  ASSERT_TRUE(receiver_->release(id, 42 * kSegment));  // the window is more than twice as large now
  const std::vector<testing::Reply> replies = testing::replies_of(*receiver_, now_);
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().acknowledgement, 1 + 42 * kSegment);
  EXPECT_EQ(replies[0].tcp().window, 0xffff);
  EXPECT_EQ(by_lane(), 1U);
  // The later one of two that wait is sent.
  give_segments(42, 2);
  settle();
  give_segments(44, 2);
  settle();
  const std::vector<testing::Reply> later = testing::replies_of(*receiver_, now_);
  ASSERT_EQ(later.size(), 1U);
  EXPECT_EQ(later[0].tcp().acknowledgement, 1 + 46 * kSegment);
  EXPECT_EQ(by_lane(), 2U);
}

TEST(ReceiverSettings, RefuseALaneThatAcknowledgesWhereThereIsNone) {
  ReceiverSettings settings = testing::small_settings();
  settings.lane_acknowledges = true;
  const auto receiver = StreamReceiver::create(settings, Nanos{1});
  ASSERT_FALSE(receiver.ok());
  EXPECT_EQ(receiver.error().kind, ErrorKind::usage);
}

}  // namespace
}  // namespace warpline::stream
