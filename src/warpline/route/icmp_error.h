// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/address.h"
#include "warpline/base/frame.h"
#include "warpline/packet/parse.h"

namespace warpline::route {

/// Why a datagram is sent back (RFC 792, RFC 1812 5.2.7, RFC 4443 3).
enum class IcmpReason : std::uint8_t {
  time_exceeded,
  no_route,
  host_unreachable,  ///< the next hop does not say where it is
  too_big,
  port_unreachable,
};

/// What stands before the datagram in an error: Ethernet, IP and ICMP headers.
inline constexpr std::uint32_t kIcmpV4ErrorHeaders = 42;
inline constexpr std::uint32_t kIcmpV6ErrorHeaders = 62;

/// Whether an error may be sent about a well-formed frame: not about ICMP errors and redirects, later fragments, what
/// came to a group, or what comes from no single host; `too_big` over IPv4 only if it may not be fragmented (RFC
/// 1812, 4.3.2.7; RFC 1191; RFC 4443, 2.4(e)). The Ethernet header lies in the first segment.
[[nodiscard]] bool may_send_icmp_error(FrameRef frame, const packet::ParsedFrame& parsed, IcmpReason reason);

/// What an error is made of.
struct IcmpError {
  IcmpReason reason;
  MacAddress own_mac;
  MacAddress station;  ///< that the frame came from
  IpAddress own;       ///< of the receiving port, in the datagram's family
  std::uint16_t mtu;   ///< for too_big
};

/// Writes the headers right before `datagram`, whose first `have` bytes lie there in one piece, at least an IP header;
/// before it kIcmpV4ErrorHeaders or kIcmpV6ErrorHeaders bytes are writable. Returns how many bytes of the datagram
/// belong to the error: all that fits into 576 (RFC 1812, 4.3.2.3) or 1280 (RFC 4443, 2.4(c)). The frame is the headers
/// and these.
[[nodiscard]] std::uint32_t write_icmp_error(const IcmpError& error, std::uint8_t* datagram, std::uint32_t have);

}  // namespace warpline::route
