// SPDX-License-Identifier: Apache-2.0
// A receiver whose segments a thread takes: what is lent comes back once, and bytes are where they belong.
#include "warpline/stream/lanes/thread_lane.h"

#include <gtest/gtest.h>

#include <array>
#include <list>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/stream/stream_receiver.h"
#include "warpline/stream/stream_receiver_testing.h"

namespace warpline::stream::testing {
namespace {

using LentFrame = std::vector<std::uint8_t>;

ReceiverSettings lane_settings() {
  ReceiverSettings settings;
  settings.mac = kOurMac;
  settings.address = Ipv4Address{{10, 0, 0, 1}};
  settings.ports = {kPort};
  settings.connections = 4;
  settings.ring_bytes = 64 << 10;
  settings.secret[0] = 1;
  return settings;
}

/// A peer that writes segments of a connection without options.
class LanePeerFrames {
 public:
  [[nodiscard]] LentFrame make(std::uint32_t sequence, std::uint32_t acknowledgement, std::uint8_t flags,
                               std::uint32_t length) const {
    packet::TcpFrame frame;
    frame.destination_mac = kOurMac;
    frame.source_mac = kPeerMac;
    frame.source = Ipv4Address{{10, 0, 0, 2}};
    frame.destination = Ipv4Address{{10, 0, 0, 1}};
    frame.tcp.source_port = 40'000;
    frame.tcp.destination_port = kPort;
    frame.tcp.sequence = sequence;
    frame.tcp.acknowledgement = acknowledgement;
    frame.tcp.flags = flags;
    const std::uint32_t headers = packet::tcp_headers_length(frame);
    LentFrame bytes(headers + length);
    for (std::uint32_t i = 0; i < length; ++i) bytes[headers + i] = pattern_at(sequence - 1 + i);
    packet::ChecksumSum sum;
    sum.add(bytes.data() + headers, length);
    static_cast<void>(packet::emit(frame, bytes, length, sum));
    return bytes;
  }
};

/// Frames that are lent to a receiver.
class Lender : public OtherFrames {
 public:
  explicit Lender(StreamReceiver& receiver) : receiver_(receiver) {}

  void give(LentFrame frame) {
    LentFrame& bytes = lent_.emplace_back(std::move(frame));
    Segment segment{bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0, Verdict::forward};
    receiver_.give(frame_at(&segment), false, &bytes);
  }
  /// Waits until nothing is in flight any more.
  void settle(Nanos now) {
    receiver_.end_burst(now);
    while (receiver_.in_flight() != 0) {
      receiver_.end_burst(now);
      if (!receiver_.collect(this, now)) std::this_thread::yield();
    }
    std::array<void*, 3> tokens;
    while (const std::uint32_t count = receiver_.take_back(tokens)) {
      for (std::uint32_t i = 0; i < count; ++i) drop(tokens[i]);
    }
  }
  [[nodiscard]] bool take(FrameRef frame, void* token) override {
    if (frame.length != kOdd) return false;
    drop(token);
    ++taken;
    return true;
  }
  [[nodiscard]] std::size_t lent() const { return lent_.size(); }

  static constexpr std::uint32_t kOdd = 60;  ///< bytes of a frame that is none for the receiver
  int taken = 0;

 private:
  void drop(void* token) {
    const std::size_t before = lent_.size();
    std::erase_if(lent_, [token](const LentFrame& frame) { return &frame == token; });
    EXPECT_EQ(lent_.size() + 1, before);
  }

  StreamReceiver& receiver_;
  std::list<LentFrame> lent_;
};

TEST(ThreadLane, ReceivesAConnection) {
  const ReceiverSettings settings = lane_settings();
  const Nanos now{1'000'000'000};
  auto lane = make_thread_lane(lane_shape(settings, 16, 2));
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
  const auto event = receiver.poll();
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
  EXPECT_FALSE(receiver.lane_failure());
}

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
}

}  // namespace
}  // namespace warpline::stream::testing
