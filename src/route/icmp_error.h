// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/address.h"

namespace warpline {

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

/// How much of the datagram goes along: all that fits into 576 bytes (RFC 1812, 4.3.2.3) or 1280 (RFC 4443, 2.4(c)).
inline constexpr std::uint32_t kIcmpV4ErrorKeeps = 576 - 28;
inline constexpr std::uint32_t kIcmpV6ErrorKeeps = 1280 - 48;

/// A received frame that holds an IP datagram.
struct Offender {
  const std::uint8_t* ethernet;  ///< 14 bytes, before any tag
  std::uint8_t* datagram;        ///< its IP header; the frame is parsed and well formed
  std::uint32_t length;          ///< of the datagram
  std::uint32_t have;            ///< bytes of it in one piece from `datagram` on
};

/// Whether an error may be sent: not about ICMP errors and redirects, later fragments, what came to a group, or from
/// what is no single host (RFC 1812, 4.3.2.7; RFC 4443, 2.4(e)). Reads up to 60 bytes of the datagram.
[[nodiscard]] bool may_send_icmp_error(const Offender& offender, IcmpReason reason);

/// Writes the headers right before `offender.datagram`, where kIcmpV4ErrorHeaders or kIcmpV6ErrorHeaders bytes are
/// writable; they may cover the frame's old Ethernet header. From `own_mac` and `own`, an address of the receiving
/// port, back to the station that sent the frame. `mtu`: for too_big. Returns how many bytes of the datagram belong to
/// the error: the frame is the headers and these.
[[nodiscard]] std::uint32_t write_icmp_error(const Offender& offender, IcmpReason reason, const MacAddress& own_mac,
                                             const IpAddress& own, std::uint16_t mtu);

}  // namespace warpline
