// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "warpline/base/address.h"
#include "warpline/base/host_device.h"
#include "warpline/packet/checksum.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/icmpv6.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/headers/ipv6.h"
#include "warpline/packet/headers/ipv6_extension.h"

namespace warpline::packet {

// Multicast listener discovery: version 2 (RFC 3810) and version 1 (RFC 2710).

/// The solicited-node group of an address (RFC 4291, 2.7.1).
[[nodiscard]] WARPLINE_HD constexpr Ipv6Address solicited_node(const Ipv6Address& address) {
  const auto& last = address.bytes;
  return {{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, last[13], last[14], last[15]}};
}

/// The MAC address that frames to an IPv6 group have (RFC 2464, 7).
[[nodiscard]] WARPLINE_HD constexpr MacAddress group_mac(const Ipv6Address& group) {
  const auto& last = group.bytes;
  return {{0x33, 0x33, last[12], last[13], last[14], last[15]}};
}

/// ff02::1 (RFC 4291, 2.7.1).
[[nodiscard]] WARPLINE_HD constexpr Ipv6Address all_nodes() {
  return {{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
}
/// ff02::16, all routers that speak MLDv2 (RFC 3810, 5.2.14).
[[nodiscard]] WARPLINE_HD constexpr Ipv6Address all_listener_routers() {
  return {{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x16}};
}

/// Whether `bytes` begins with an address of fe80::/10.
[[nodiscard]] WARPLINE_HD constexpr bool is_link_local(const std::uint8_t* bytes) {
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

inline constexpr std::uint32_t kListenerAlertLength = 8;    ///< a hop-by-hop header with the router alert (RFC 2711)
inline constexpr std::uint32_t kListenerV1Length = 24;      ///< any message of version 1
inline constexpr std::uint32_t kListenerQueryLength = 28;   ///< of version 2; its sources follow
inline constexpr std::uint32_t kListenerRecordLength = 20;  ///< of a report of version 2; its sources follow
inline constexpr std::uint32_t kListenerRecord = 8;         ///< where the first record of a report begins
inline constexpr std::uint32_t kListenerGroup = 8;          ///< where the group of a query or of a version 1 report is
inline constexpr std::uint32_t kListenerQuerySources = 26;  ///< where a query has the number of its sources

/// Kinds of records (RFC 3810, 5.2.12).
enum class ListenerRecord : std::uint8_t {
  is_include = 1,  ///< answers a query: packets from these sources alone are wanted
  is_exclude = 2,  ///< answers a query: packets from all sources but these are wanted
  to_exclude = 4,  ///< says that the group has been joined
};

/// Frame bytes of a report of version 2 with one record without sources.
inline constexpr std::uint32_t kListenerReportLength = EthernetView::kHeaderLength + Ipv6View::kHeaderLength +
                                                       kListenerAlertLength + kListenerRecord + kListenerRecordLength;

/// Frame bytes of a report of version 1.
inline constexpr std::uint32_t kListenerReportLengthV1 =
    EthernetView::kHeaderLength + Ipv6View::kHeaderLength + kListenerAlertLength + kListenerV1Length;

/// Writes the IPv6 header, the hop-by-hop header with the router alert and the beginning of the message: all but the
/// sources, if any, which are where they belong already. `ip` holds 48 bytes and the message.
WARPLINE_HD inline void emit_listener_report(std::uint8_t* ip, const Ipv6Address& source, const Ipv6Address& group,
                                             ListenerRecord record, std::uint16_t sources, bool version_1) {
  std::uint8_t* const message = ip + Ipv6View::kHeaderLength + kListenerAlertLength;
  const std::uint32_t length = version_1 ? kListenerV1Length : kListenerRecord + kListenerRecordLength + 16U * sources;
  emit(Ipv6Header{.payload_length = static_cast<std::uint16_t>(kListenerAlertLength + length),
                  .next_header = kExtensionHopByHop,
                  .hop_limit = 1,
                  .source = source,
                  .destination = version_1 ? group : all_listener_routers()},
       ip);
  // Router alert: MLD (RFC 2711, 2.1), and two bytes of padding.
  const std::uint8_t alert[kListenerAlertLength] = {kProtocolIcmpv6, 0, 5, 2, 0, 0, 1, 0};
  std::memcpy(ip + Ipv6View::kHeaderLength, alert, sizeof alert);
  std::memset(message, 0, kListenerRecord);
  std::uint8_t* at = message + kListenerGroup;
  if (version_1) {
    message[IcmpView::kType] = kListenerReportV1;
  } else {
    message[IcmpView::kType] = kListenerReportV2;
    store_be16(message + 6, 1);  // records
    at[0] = static_cast<std::uint8_t>(record);
    at[1] = 0;
    store_be16(at + 2, sources);
    at += 4;
  }
  store_address(at, group);
  ChecksumSum sum = pseudo_header_v6(ip + Ipv6View::kSource, kProtocolIcmpv6, length);
  sum.add(message, length);
  store_be16(message + IcmpView::kChecksum, sum.checksum());
}

/// Whether the hop-by-hop header of `length` bytes has the router alert for MLD. Its options are well formed.
[[nodiscard]] WARPLINE_HD inline bool has_listener_alert(const std::uint8_t* header, std::uint32_t length) {
  for (std::uint32_t at = 2; at + 4 <= length; at += header[at] == 0 ? 1 : 2U + header[at + 1]) {
    if (header[at] == 5 && header[at + 1] == 2) return load_be16(header + at + 2) == 0;
  }
  return false;
}

}  // namespace warpline::packet
