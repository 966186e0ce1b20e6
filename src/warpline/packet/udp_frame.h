// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "warpline/base/address.h"
#include "warpline/packet/checksum.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/headers/ipv6.h"
#include "warpline/packet/headers/udp.h"

namespace warpline::packet {

/// What differs between the headers of Ethernet/IP/UDP frames. Both IP addresses are of one family.
struct UdpFrame {
  MacAddress destination_mac;          ///< the peer's, or the next hop's
  MacAddress source_mac;               ///< the sender's
  IpAddress source;                    ///< the sender's
  IpAddress destination;               ///< the receiver's
  std::uint16_t source_port = 0;       ///< in host byte order
  std::uint16_t destination_port = 0;  ///< in host byte order
  std::uint16_t identification = 0;    ///< IPv4's
  std::uint8_t type_of_service = 0;    ///< IPv4's, or IPv6's traffic class
  std::uint8_t time_to_live = 64;      ///< or hop limit
};

/// The most that an IPv4 datagram of 65535 bytes has room for.
inline constexpr std::uint32_t kMaxUdpPayload = 65507;

/// Bytes before the payload: 42 over IPv4, 62 over IPv6.
[[nodiscard]] std::uint32_t udp_headers_length(const UdpFrame& frame);

/// Writes the headers, with right checksums, before the payload that `frame` already holds from udp_headers_length()
/// on: the UDP payload is all the rest of `frame`. Returns the headers' length; 0, and nothing
/// written, when they do not fit, the payload is too long or the addresses are of two families.
[[nodiscard]] std::uint32_t emit(const UdpFrame& header, std::span<std::uint8_t> frame);

/// The same for a payload known by its length and sum alone: headers only, into the front of `out`.
[[nodiscard]] std::uint32_t emit(const UdpFrame& header, std::span<std::uint8_t> out, std::uint32_t payload_length,
                                 const ChecksumSum& payload_sum);

}  // namespace warpline::packet
