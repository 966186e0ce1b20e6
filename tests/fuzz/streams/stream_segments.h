// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "fuzz/packet_input.h"
#include "warpline/packet/tcp_frame.h"
#include "warpline/stream/stream_receiver.h"

namespace warpline {

inline constexpr std::uint32_t kPeerInitial = 1000;  ///< sequence number of the peer's SYN

/// A receiver of two connections, of which one may be half open.
inline stream::ReceiverSettings receiver_of_two() {
  stream::ReceiverSettings settings;
  settings.mac = packet::kTestDestinationMac;
  settings.address = packet::kTestDestinationV4;
  settings.ports = {80};
  settings.connections = 2;
  settings.half_open = 1;
  settings.ring_bytes = 64 << 10;
  settings.secret[0] = 1;
  return settings;
}

/// A segment of `length` bytes `fill`, its numbers and options in `tcp`.
inline packet::FrameBytes segment(const packet::TcpHeader& tcp, std::uint32_t length, std::uint8_t fill) {
  packet::TcpFrame frame;
  frame.destination_mac = packet::kTestDestinationMac;
  frame.source_mac = packet::kTestSourceMac;
  frame.source = packet::kTestSourceV4;
  frame.destination = packet::kTestDestinationV4;
  frame.tcp = tcp;
  frame.tcp.destination_port = 80;
  const std::uint32_t headers = packet::tcp_headers_length(frame);
  packet::FrameBytes bytes(headers + length, fill);
  packet::ChecksumSum sum;
  sum.add(bytes.data() + headers, length);
  require(packet::emit(frame, bytes, length, sum) == headers, "a segment is written");
  return bytes;
}

/// A segment whose numbers lie near those of the connection.
inline packet::FrameBytes any_segment(FuzzInput& input, std::uint32_t acknowledgement) {
  packet::TcpHeader tcp;
  tcp.source_port = static_cast<std::uint16_t>(1 + input.byte() / 100);
  tcp.flags = input.byte();
  if ((tcp.flags & 0x80) != 0) tcp.flags = packet::kTcpAck;  // as most are
  const auto step = static_cast<std::int8_t>(input.byte());
  const std::int32_t scale = 1 << (input.byte() % 17);
  tcp.sequence = kPeerInitial + static_cast<std::uint32_t>(step * scale);
  tcp.acknowledgement = acknowledgement + static_cast<std::uint32_t>(static_cast<std::int8_t>(input.byte()) / 64);
  tcp.options_length = static_cast<std::uint8_t>(input.byte() % 11 * 4);
  for (std::uint8_t i = 0; i < tcp.options_length; ++i) tcp.options[i] = input.byte();
  const std::uint32_t length = input.byte() % 8 * 190;
  return segment(tcp, length, input.byte());
}

/// The SYN of port 1, which permits selective acknowledgements or has no options.
inline packet::TcpHeader first_syn(bool selective) {
  packet::TcpHeader tcp;
  tcp.source_port = 1;
  tcp.flags = packet::kTcpSyn;
  tcp.sequence = kPeerInitial;
  if (selective) {
    tcp.options_length = 4;
    const std::uint8_t permitted[] = {packet::kTcpOptionNop, packet::kTcpOptionNop, packet::kTcpOptionSackPermitted, 2};
    std::copy_n(permitted, 4, tcp.options);
  }
  return tcp;
}

/// The segment that ends the handshake which `tcp` began, by the answer with that number.
inline packet::TcpHeader third_segment(packet::TcpHeader tcp, std::uint32_t answered) {
  tcp.acknowledgement = answered + 1;
  tcp.sequence = kPeerInitial + 1;
  tcp.flags = packet::kTcpAck;
  tcp.options_length = 0;
  return tcp;
}

}  // namespace warpline
