// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/tcp.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::packet {
namespace {

Verdict check_segment(const FrameBytes& segment) {
  return TcpView::check(segment.data(), static_cast<std::uint32_t>(segment.size()));
}

TEST(Tcp, BytesOnTheWire) {
  EXPECT_EQ(tcp_segment({0xaa}, {2, 4, 5, 0xb4}),
            (FrameBytes{0xc0, 0, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x60, 0x18, 2, 0, 0, 0, 0, 0, 2, 4, 5, 0xb4, 0xaa}));
}

TEST(Tcp, WellFormedOptions) {
  const std::vector<FrameBytes> all = {
      {2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7},  // a Linux SYN
      {1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2},
      {0, 77, 77, 77},
      {30, 2, 30, 2},
      FrameBytes(40, kTcpOptionNop),
  };
  for (const FrameBytes& options : all) EXPECT_EQ(check_segment(tcp_segment({}, options)), Verdict::forward);
}

TEST(Tcp, Text) {
  TcpHeader header;
  header.source_port = 5001;
  header.destination_port = 80;
  EXPECT_EQ(to_string(header), "tcp 5001 > 80 - seq 0 ack 0 window 0");
  header.flags = kTcpSyn | kTcpAck | kTcpUrg;
  header.sequence = 1;
  header.acknowledgement = 2;
  header.window = 65535;
  header.urgent = 3;
  header.options_length = 4;
  EXPECT_EQ(to_string(header), "tcp 5001 > 80 SAU seq 1 ack 2 window 65535 urgent 3 options 4");
}

WARPLINE_PROPERTY(TcpProperty, EmittedIsParsed,
                  (std::uint16_t source, std::uint16_t destination, std::uint32_t sequence, std::uint32_t ack,
                   std::uint8_t flags, std::uint16_t window, std::uint16_t sum, std::uint16_t urgent)) {
  TcpHeader header{source, destination, sequence, ack, flags, window, sum, urgent, 0, {}};
  header.options_length = static_cast<std::uint8_t>(*rc::gen::inRange(0, 11) * 4);
  std::fill_n(header.options, header.options_length, kTcpOptionNop);
  FrameBytes bytes(20U + header.options_length);
  emit(header, bytes.data());
  TcpHeader back;
  RC_ASSERT(parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), back) == Verdict::forward);
  RC_ASSERT(back == header);
}

}  // namespace
}  // namespace warpline::packet
