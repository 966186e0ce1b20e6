// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "warpline/base/address.h"
#include "warpline/packet/checksum.h"
#include "warpline/packet/headers/tcp.h"

namespace warpline::packet {

/// What differs between the headers of Ethernet/IP/TCP frames. Both IP addresses are of one family.
struct TcpFrame {
  MacAddress destination_mac;        ///< the peer's, or the next hop's
  MacAddress source_mac;             ///< the sender's
  IpAddress source;                  ///< the sender's
  IpAddress destination;             ///< the receiver's
  TcpHeader tcp;                     ///< its checksum is made
  std::uint8_t type_of_service = 0;  ///< IPv4's, or IPv6's traffic class
  std::uint8_t time_to_live = 64;    ///< or hop limit
};

/// Returns the bytes before the payload: 54 over IPv4, 74 over IPv6, and the options.
[[nodiscard]] std::uint32_t tcp_headers_length(const TcpFrame& frame);

/// Writes the headers, with right checksums, of a segment whose payload is known by its length and sum, into the front
/// of `out`. Returns their length; 0, and nothing written, if they do not fit, the payload is more than a datagram
/// holds or the addresses are of two families.
[[nodiscard]] std::uint32_t emit(const TcpFrame& header, std::span<std::uint8_t> out, std::uint32_t payload_length,
                                 const ChecksumSum& payload_sum);

}  // namespace warpline::packet
