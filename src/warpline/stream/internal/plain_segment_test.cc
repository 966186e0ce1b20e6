// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/internal/plain_segment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/packet/tcp_frame.h"

namespace warpline::stream {
namespace {

FrameWords words_of(const std::vector<std::uint8_t>& frame) {
  FrameWords head;
  std::memset(&head, 0xa5, sizeof(head));
  std::memcpy(&head, frame.data(), std::min(frame.size(), sizeof(head)));
  return head;
}

/// A segment with 40 bytes of payload and either the options that RFC 7323 lays out, none, or these three in disorder.
std::vector<std::uint8_t> segment(std::uint32_t options, Random& random) {
  packet::TcpFrame frame;
  frame.destination_mac = {{2, 0, 0, 0, 0, 1}};
  frame.source_mac = {{2, 0, 0, 0, 0, 2}};
  frame.source = Ipv4Address{{10, 0, 0, 2}};
  frame.destination = Ipv4Address{{192, 168, 0, 1}};
  frame.tcp.source_port = static_cast<std::uint16_t>(random.next());
  frame.tcp.destination_port = static_cast<std::uint16_t>(random.next());
  frame.tcp.sequence = static_cast<std::uint32_t>(random.next());
  frame.tcp.acknowledgement = static_cast<std::uint32_t>(random.next());
  frame.tcp.flags = static_cast<std::uint8_t>(random.next() & 0x3f);
  frame.tcp.urgent = static_cast<std::uint16_t>(random.next());
  if (options != 0) {
    std::uint8_t* const at = frame.tcp.options;
    const std::uint32_t nops = options == 1 ? 0 : 10;
    at[nops] = at[nops + 1] = packet::kTcpOptionNop;
    std::uint8_t* const timestamps = at + (options == 1 ? 2 : 0);
    timestamps[0] = packet::kTcpOptionTimestamps;
    timestamps[1] = 10;
    packet::store_be32(timestamps + 2, static_cast<std::uint32_t>(random.next()));
    packet::store_be32(timestamps + 6, static_cast<std::uint32_t>(random.next()));
    frame.tcp.options_length = 12;
  }
  constexpr std::uint32_t kPayload = 40;
  std::vector<std::uint8_t> bytes(packet::tcp_headers_length(frame) + kPayload);
  static_cast<void>(packet::emit(frame, bytes, kPayload, {}));
  return bytes;
}

/// Whether it is read as plain; and if so, as read_segment() reads it.
bool is_plain(std::vector<std::uint8_t> bytes) {
  SegmentReading plain;
  if (!read_plain_segment(words_of(bytes), static_cast<std::uint32_t>(bytes.size()), plain)) return false;
  Segment whole{bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0, Verdict::forward};
  SynOptions offered;
  const SegmentReading reading = read_segment({&whole, 1, whole.length}, true, offered);
  EXPECT_EQ(plain.disposition, reading.disposition);
  EXPECT_EQ(plain.flags, reading.flags);
  EXPECT_EQ(plain.has_timestamp, reading.has_timestamp);
  EXPECT_EQ(plain.urgent, reading.urgent);
  EXPECT_EQ(plain.sequence, reading.sequence);
  EXPECT_EQ(plain.acknowledgement, reading.acknowledgement);
  EXPECT_EQ(plain.timestamp, reading.timestamp);
  EXPECT_EQ(plain.timestamp_echo, reading.timestamp_echo);
  EXPECT_EQ(plain.payload_offset, reading.payload_offset);
  EXPECT_EQ(plain.payload_length, reading.payload_length);
  EXPECT_TRUE(plain.key == reading.key);
  return true;
}

TEST(PlainSegment, HasNoOptionsOrTimestampsAsTheRfcLaysThemOut) {
  Random random(1);
  EXPECT_TRUE(is_plain(segment(0, random)));
  EXPECT_TRUE(is_plain(segment(1, random)));
  EXPECT_FALSE(is_plain(segment(2, random)));
}

TEST(PlainSegment, IsReadAsAnyOtherIsWhateverItsBytesSay) {
  Random random(2);
  std::size_t plain = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::vector<std::uint8_t> bytes = segment(static_cast<std::uint32_t>(random.below(3)), random);
    for (std::uint64_t flips = random.below(3); flips != 0; --flips) {
      bytes[random.below(std::min<std::uint64_t>(bytes.size(), 68))] = static_cast<std::uint8_t>(random.next());
    }
    if (random.below(4) == 0) bytes.resize(random.below(bytes.size() + 1));
    if (random.below(8) == 0) bytes.resize(bytes.size() + random.below(20));
    plain += is_plain(std::move(bytes)) ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(plain, 40'000U);
}

}  // namespace
}  // namespace warpline::stream
