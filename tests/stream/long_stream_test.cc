// SPDX-License-Identifier: Apache-2.0
// More than 4 GiB by one connection: sequence numbers, and offsets in 32 bits, come round.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/stream/stream_receiver.h"
#include "warpline/stream/stream_sender.h"

namespace warpline::stream {
namespace {

constexpr std::uint64_t kBytesInAll = (4ULL << 30) + (256 << 20);
constexpr std::uint64_t kBetweenMarks = 1024;
constexpr MacAddress kSenderMac{{2, 0, 0, 0, 0, 1}};
constexpr MacAddress kReceiverMac{{2, 0, 0, 0, 0, 2}};
constexpr Ipv4Address kSenderIp{{10, 0, 0, 1}};
constexpr Ipv4Address kReceiverIp{{10, 0, 0, 2}};

std::uint8_t mark_at(std::uint64_t offset) { return static_cast<std::uint8_t>(mix64(offset)); }

/// Calls fn(place of it, mark) for each byte of `[offset, offset + length)` that tells where it is from.
template <typename F>
void for_each_mark(std::uint64_t offset, std::uint64_t length, F&& fn) {
  const std::uint64_t first = (offset + kBetweenMarks - 1) / kBetweenMarks * kBetweenMarks;
  for (std::uint64_t at = first; at < offset + length; at += kBetweenMarks) fn(at - offset, mark_at(at));
}

/// One byte in a thousand says where it is from; the others are what was there. Nobody asks for the sum.
struct MarkedSource final : PayloadSource {
  void read(ConnectionId, std::uint64_t offset, std::uint32_t length, std::uint8_t* to,
            packet::ChecksumSum&) const override {
    for_each_mark(offset, length, [&](std::uint64_t at, std::uint8_t mark) { to[at] = mark; });
  }
};

TEST(LongStream, ComesRoundAllNumbers) {
  Nanos now{1};
  ReceiverSettings to;
  to.mac = kReceiverMac;
  to.address = kReceiverIp;
  to.ports = {5001};
  to.ring_bytes = 1 << 20;
  to.mtu = 9000;
  to.secret[0] = 1;
  StreamReceiver receiver = std::move(StreamReceiver::create(to, now)).value();
  SenderSettings from;
  from.mac = kSenderMac;
  from.address = kSenderIp;
  from.mtu = 9000;
  from.secret[0] = 2;
  const MarkedSource source;
  StreamSender sender = std::move(StreamSender::create(from, source, now)).value();
  const auto id = sender.connect({kReceiverIp, 5001}, kReceiverMac, now);
  ASSERT_TRUE(id);
  sender.offer(*id, kBytesInAll);
  sender.close(*id);

  std::vector<std::uint8_t> frame(sender.frame_bytes());
  std::uint64_t received = 0;
  bool finished = false;
  bool received_all = false;
  while (!finished || !received_all) {
    now.value += 10'000;
    ASSERT_LT(now.value, 3600LL * 1'000'000'000);
    sender.advance(now);
    receiver.advance(now);
    while (const std::uint32_t length = sender.next_frame(frame, now)) {
      Segment segment{frame.data(), length, 0, Verdict::forward};
      receiver.receive(frame_at(&segment), true, now);
    }
    receiver.end_burst(now);
    while (const auto event = receiver.poll()) {
      const auto view = receiver.view(event->connection);
      ASSERT_EQ(view->begin, received);
      bool right = true;
      for_each_mark(view->begin, view->bytes.size(),
                    [&](std::uint64_t at, std::uint8_t mark) { right &= view->bytes[at] == mark; });
      ASSERT_TRUE(right) << "from byte " << view->begin;
      received += view->bytes.size();
      receiver.release(event->connection, view->bytes.size());
      if (event->state == ConnectionState::open) continue;
      ASSERT_EQ(event->state, ConnectionState::finished);
      receiver.close(event->connection, now);
      received_all = true;
    }
    while (const std::uint32_t length = receiver.next_reply(frame, now)) {
      Segment segment{frame.data(), length, 0, Verdict::forward};
      sender.receive(frame_at(&segment), true, now);
    }
    while (const auto event = sender.poll()) finished |= event->state == SendState::finished;
  }
  EXPECT_EQ(received, kBytesInAll);
  EXPECT_EQ(sender.counters().acknowledged.get(), kBytesInAll);
  EXPECT_EQ(sender.counters().retransmitted.get(), 0U);
}

}  // namespace
}  // namespace warpline::stream
