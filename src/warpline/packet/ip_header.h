// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <variant>

#include "warpline/base/address.h"
#include "warpline/packet/checksum.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/headers/ipv6.h"

namespace warpline::packet {

/// What a host sets in the IP header of what it sends. Both addresses are of one family.
struct IpHeader {
  IpAddress source;                  ///< the sender's
  IpAddress destination;             ///< the receiver's
  std::uint8_t protocol = 0;         ///< of the payload
  std::uint8_t type_of_service = 0;  ///< IPv4's, or IPv6's traffic class
  std::uint8_t time_to_live = 64;    ///< or hop limit
  std::uint16_t identification = 0;  ///< IPv4's
};

/// Returns the bytes of a header without options to or from this address.
[[nodiscard]] inline std::uint32_t ip_header_length(const IpAddress& address) {
  return std::holds_alternative<Ipv4Address>(address) ? Ipv4View::kHeaderLength : Ipv6View::kHeaderLength;
}

/// Writes ip_header_length() bytes before a payload of `payload_length` bytes that is not to be fragmented.
inline void emit(const IpHeader& header, std::uint32_t payload_length, std::uint8_t* bytes) {
  if (const auto* source = std::get_if<Ipv4Address>(&header.source)) {
    Ipv4Header v4;
    v4.type_of_service = header.type_of_service;
    v4.total_length = static_cast<std::uint16_t>(Ipv4View::kHeaderLength + payload_length);
    v4.identification = header.identification;
    v4.dont_fragment = true;
    v4.time_to_live = header.time_to_live;
    v4.protocol = header.protocol;
    v4.source = *source;
    v4.destination = std::get<Ipv4Address>(header.destination);
    emit(v4, bytes);
    return;
  }
  Ipv6Header v6;
  v6.traffic_class = header.type_of_service;
  v6.payload_length = static_cast<std::uint16_t>(payload_length);
  v6.next_header = header.protocol;
  v6.hop_limit = header.time_to_live;
  v6.source = std::get<Ipv6Address>(header.source);
  v6.destination = std::get<Ipv6Address>(header.destination);
  emit(v6, bytes);
}

/// Returns the sum over the pseudo header of a payload behind the written IP header `bytes` of `address`' family.
[[nodiscard]] inline ChecksumSum pseudo_header(const IpAddress& address, const std::uint8_t* bytes,
                                               std::uint8_t protocol, std::uint32_t payload_length) {
  return std::holds_alternative<Ipv4Address>(address)
             ? pseudo_header_v4(bytes + Ipv4View::kSource, protocol, payload_length)
             : pseudo_header_v6(bytes + Ipv6View::kSource, protocol, payload_length);
}

}  // namespace warpline::packet
