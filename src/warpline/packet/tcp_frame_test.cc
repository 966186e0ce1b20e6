// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/tcp_frame.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "warpline/packet/parse.h"
#include "warpline/packet/verify.h"

namespace warpline::packet {
namespace {

TcpFrame frame_between(const char* source, const char* destination) {
  TcpFrame frame;
  frame.destination_mac = {{2, 0, 0, 0, 0, 1}};
  frame.source_mac = {{2, 0, 0, 0, 0, 2}};
  frame.source = *parse_ip(source);
  frame.destination = *parse_ip(destination);
  frame.tcp.source_port = 5001;
  frame.tcp.destination_port = 80;
  frame.tcp.sequence = 0xfffffff0;
  frame.tcp.acknowledgement = 7;
  frame.tcp.flags = kTcpAck | kTcpPsh;
  frame.tcp.window = 512;
  const std::array<std::uint8_t, 12> timestamps = {1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8};
  frame.tcp.options_length = timestamps.size();
  std::memcpy(frame.tcp.options, timestamps.data(), timestamps.size());
  return frame;
}

void expect_read_as_written(const TcpFrame& written) {
  for (const std::uint32_t length : {0U, 1U, 6U, 1447U, 8944U}) {
    const std::uint32_t headers = tcp_headers_length(written);
    std::vector<std::uint8_t> bytes(headers + length);
    std::iota(bytes.begin() + headers, bytes.end(), std::uint8_t{3});
    ChecksumSum payload;
    payload.add(bytes.data() + headers, length);
    ASSERT_EQ(emit(written, bytes, length, payload), headers);

    Segment segment{bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0, Verdict::forward};
    const FrameRef frame = frame_at(&segment);
    const ParsedFrame parsed = parse(frame);
    ASSERT_EQ(parsed.verdict, Verdict::forward);
    EXPECT_EQ(parsed.payload_length, length);
    EXPECT_EQ(verify_checksums(frame, parsed), Verdict::forward);
    TcpHeader read;
    ASSERT_EQ(parse(bytes.data() + parsed.l4_offset, l4_total(parsed), read), Verdict::forward);
    read.checksum = written.tcp.checksum;
    EXPECT_EQ(read, written.tcp);
  }
}

TEST(TcpFrame, IsReadAsItWasWritten) {
  expect_read_as_written(frame_between("10.0.0.1", "10.0.0.2"));
  expect_read_as_written(frame_between("fd00::1", "fd00::2"));
}

TEST(TcpFrame, RefusesWhatFitsNowhere) {
  const TcpFrame frame = frame_between("10.0.0.1", "10.0.0.2");
  std::vector<std::uint8_t> bytes(65);
  EXPECT_EQ(emit(frame, bytes, 0, {}), 0U);
  bytes.resize(66);
  EXPECT_EQ(emit(frame, bytes, 0, {}), 66U);
  EXPECT_EQ(emit(frame, bytes, 65535 - 20 - 32, {}), 66U);
  EXPECT_EQ(emit(frame, bytes, 65535 - 20 - 31, {}), 0U);
  TcpFrame mixed = frame;
  mixed.destination = *parse_ip("fd00::1");
  EXPECT_EQ(emit(mixed, bytes, 0, {}), 0U);
}

}  // namespace
}  // namespace warpline::packet
