// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "warpline/base/enum_list.h"
#include "warpline/base/host_device.h"

namespace warpline {

/// What becomes of a packet. The first two leave the program again; every other one is a reason to drop,
/// has a counter of its own and is the key under `drops` in the JSON report.
#define WARPLINE_VERDICTS(X)                                                                \
  X(forward, "leaves by the transmit port")                                                 \
  X(reply, "leaves by the port that it came from: an answer to ARP, ND or echo")            \
  X(tx_full, "the transmit queue stayed full for all retries")                              \
  X(no_mbuf, "no buffer was free")                                                          \
  X(engine_stopped, "the engine did not complete the batch before the drain timeout")       \
  X(engine_hung, "in the hands of a GPU that hangs: its buffer is not used again")          \
  X(runt, "shorter than an Ethernet header")                                                \
  X(giant, "longer than the port's MTU allows")                                             \
  X(too_many_segments, "more segments than a frame may have")                               \
  X(vlan_truncated, "ends inside a VLAN tag")                                               \
  X(vlan_nested, "more VLAN tags than two")                                                 \
  X(arp_truncated, "ends inside the ARP packet")                                            \
  X(arp_malformed, "ARP that is not IPv4 over Ethernet")                                    \
  X(ipv4_truncated, "ends inside the IPv4 header")                                          \
  X(ipv4_version, "IPv4 EtherType with another version")                                    \
  X(ipv4_header_length, "IHL below 5 or past the datagram")                                 \
  X(ipv4_total_length, "total length below the header or past the frame")                   \
  X(ipv4_options, "a malformed IPv4 option")                                                \
  X(ipv4_checksum, "wrong IPv4 header checksum")                                            \
  X(ipv6_truncated, "ends inside the IPv6 header")                                          \
  X(ipv6_version, "IPv6 EtherType with another version")                                    \
  X(ipv6_payload_length, "payload length past the frame")                                   \
  X(ipv6_extension, "a truncated, malformed or endless chain of extension headers")         \
  X(ip_fragment, "a fragment past byte 65535, or a middle one not of 8-byte units")         \
  X(icmp_truncated, "ends inside the ICMP header")                                          \
  X(icmp_checksum, "wrong ICMP or ICMPv6 checksum")                                         \
  X(neighbour_malformed, "malformed code or options in neighbour discovery")                \
  X(udp_truncated, "ends inside the UDP header")                                            \
  X(udp_length, "UDP length below 8 or past the datagram")                                  \
  X(udp_checksum, "wrong UDP checksum, or none over IPv6")                                  \
  X(tcp_truncated, "ends inside the TCP header")                                            \
  X(tcp_data_offset, "data offset below 5 or past the datagram")                            \
  X(tcp_options, "a malformed TCP option")                                                  \
  X(tcp_checksum, "wrong TCP checksum")                                                     \
  X(other_station, "addressed to another station")                                          \
  X(not_routed, "nothing that is routed here: no IP, in a VLAN, or source-routed")          \
  X(martian, "from or to an address that no router passes on")                              \
  X(no_route, "no route leads to its destination")                                          \
  X(ttl_expired, "its time to live or hop limit has run out")                               \
  X(neighbour_unresolved, "the next hop did not say its MAC address")                       \
  X(slow_path_full, "for the router itself, or its next hop is unknown, beyond the budget") \
  X(no_listener, "for the program itself or all on the link, and nobody takes it")          \
  X(user_drop, "dropped by the workload user")                                              \
  X(unstamped, "reached the checker but is no packet of the generator")                     \
  X(corrupt, "reached the checker with wrong bytes")                                        \
  X(duplicate, "reached the checker a second time")

/// What becomes of a packet: enumerators as listed in WARPLINE_VERDICTS.
enum class Verdict : std::uint16_t { WARPLINE_VERDICTS(WARPLINE_ENUM_VALUE) };

/// How many verdicts there are.
inline constexpr std::size_t kVerdicts = 0 WARPLINE_VERDICTS(WARPLINE_ENUM_COUNT);

/// True for all but `forward` and `reply`.
[[nodiscard]] WARPLINE_HD constexpr bool is_drop(Verdict verdict) { return verdict > Verdict::reply; }

/// The verdict's name as it stands in reports.
[[nodiscard]] constexpr std::string_view name(Verdict verdict) {
  constexpr std::string_view kNames[] = {WARPLINE_VERDICTS(WARPLINE_ENUM_NAME)};
  return kNames[static_cast<std::size_t>(verdict)];
}

/// One line for people: what the verdict means.
[[nodiscard]] constexpr std::string_view meaning(Verdict verdict) {
  constexpr std::string_view kMeanings[] = {WARPLINE_VERDICTS(WARPLINE_ENUM_MEANING)};
  return kMeanings[static_cast<std::size_t>(verdict)];
}

}  // namespace warpline
