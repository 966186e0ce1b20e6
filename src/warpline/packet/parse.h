// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"
#include "warpline/packet/frame_bytes.h"
#include "warpline/packet/headers/arp.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/icmp.h"
#include "warpline/packet/headers/icmpv6.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/headers/ipv6.h"
#include "warpline/packet/headers/ipv6_extension.h"
#include "warpline/packet/headers/tcp.h"
#include "warpline/packet/headers/udp.h"
#include "warpline/packet/headers/vlan.h"

namespace warpline::packet {

/// What is behind the Ethernet header and its tags.
enum class L3Kind : std::uint8_t {
  none,  ///< something else
  arp,   ///< an ARP packet for IPv4
  ipv4,  ///< an IPv4 datagram
  ipv6,  ///< an IPv6 datagram
};
/// What is behind the IP header and its extensions.
enum class L4Kind : std::uint8_t {
  none,    ///< something else, or a fragment
  icmp,    ///< an ICMP message
  icmpv6,  ///< an ICMPv6 message
  udp,     ///< a UDP datagram
  tcp,     ///< a TCP segment
};

/// Where what lies in a frame. Offsets count from the frame's first byte, lengths in bytes. When `verdict` is a reason
/// to drop, the layers before the malformed one are described and it counts as their payload.
struct ParsedFrame {
  Verdict verdict = Verdict::forward;  ///< forward, or why it is dropped
  L3Kind l3 = L3Kind::none;            ///< what l3_offset is of
  L4Kind l4 = L4Kind::none;            ///< what l4_offset is of
  std::uint8_t protocol = 0;           ///< IP protocol behind all extension headers
  std::uint8_t vlan_tags = 0;          ///< 0..2
  bool fragment = false;               ///< of IPv4 or IPv6: no l4, the payload is the fragment's
  bool source_routed = false;          ///< the destination address is not the final one, so no L4 checksum can be told
  std::uint16_t vlan[kMaxVlanTags]{};  ///< tag control words, outermost first
  std::uint16_t ether_type = 0;        ///< behind all tags
  std::uint32_t l2_length = 0;         ///< Ethernet header and tags; l3 begins here
  std::uint32_t l3_offset = 0;         ///< header, or ARP packet
  std::uint32_t l3_length = 0;         ///< header with options or extension headers; ARP: the packet
  std::uint32_t l4_offset = 0;         ///< header
  std::uint32_t l4_length = 0;         ///< header with options
  std::uint32_t payload_offset = 0;    ///< behind the innermost header known
  std::uint32_t payload_length = 0;    ///< ends with the datagram, so without Ethernet's padding
};

/// The innermost layer's header and payload together: what an L4 checksum covers.
[[nodiscard]] WARPLINE_HD constexpr std::uint32_t l4_total(const ParsedFrame& parsed) {
  return parsed.l4_length + parsed.payload_length;
}

/// The transport header at `offset` of a datagram that has `length` bytes left there. One step of parse().
[[nodiscard]] WARPLINE_HD inline Verdict parse_l4(FrameRef frame, std::uint32_t offset, std::uint32_t length,
                                                  ParsedFrame& parsed) {
  const bool over_ipv6 = parsed.l3 == L3Kind::ipv6;
  std::uint8_t scratch[TcpView::kMaxHeaderLength];
  L4Kind kind = L4Kind::none;
  std::uint32_t header = 0;
  std::uint32_t total = length;
  Verdict verdict = Verdict::forward;
  if (parsed.protocol == kProtocolUdp) {
    const std::uint32_t have = length < UdpView::kHeaderLength ? length : UdpView::kHeaderLength;
    const std::uint8_t* bytes = bytes_at(frame, offset, have, scratch);
    verdict = bytes == nullptr ? Verdict::udp_truncated : UdpView::check(bytes, length);
    if (verdict != Verdict::forward) return verdict;
    kind = L4Kind::udp;
    header = UdpView::kHeaderLength;
    total = UdpView(bytes).length();
  } else if (parsed.protocol == kProtocolTcp) {
    const std::uint8_t* bytes =
        length < TcpView::kHeaderLength ? nullptr : bytes_at(frame, offset, TcpView::kHeaderLength, scratch);
    if (bytes == nullptr) return Verdict::tcp_truncated;
    header = TcpView(bytes).header_length();
    if (header > TcpView::kHeaderLength && header <= length) bytes = bytes_at(frame, offset, header, scratch);
    verdict = bytes == nullptr ? Verdict::tcp_truncated : TcpView::check(bytes, length);
    if (verdict != Verdict::forward) return verdict;
    kind = L4Kind::tcp;
  } else if (parsed.protocol == (over_ipv6 ? kProtocolIcmpv6 : kProtocolIcmp)) {
    const std::uint8_t* bytes =
        length < IcmpView::kHeaderLength ? nullptr : bytes_at(frame, offset, IcmpView::kHeaderLength, scratch);
    if (bytes == nullptr) return Verdict::icmp_truncated;
    kind = over_ipv6 ? L4Kind::icmpv6 : L4Kind::icmp;
    header = IcmpView::kHeaderLength;
    const std::uint8_t type = IcmpView(bytes).type();
    if (over_ipv6 && (type == kNeighbourSolicitation || type == kNeighbourAdvertisement)) {
      verdict = check_neighbour(frame, offset, length);
      if (verdict != Verdict::forward) return verdict;
    }
  } else {
    return Verdict::forward;
  }
  parsed.l4 = kind;
  parsed.l4_offset = offset;
  parsed.l4_length = header;
  parsed.payload_offset = offset + header;
  parsed.payload_length = total - header;
  return Verdict::forward;
}

/// The ARP packet at `parsed.l2_length`. One step of parse().
[[nodiscard]] WARPLINE_HD inline Verdict parse_arp(FrameRef frame, ParsedFrame& parsed) {
  const std::uint32_t offset = parsed.l2_length;
  const std::uint32_t left = frame.length - offset;
  std::uint8_t scratch[ArpView::kHeaderLength]{};  // GCC does not see that what lacks bytes is not looked at
  const std::uint32_t have = left < ArpView::kHeaderLength ? left : ArpView::kHeaderLength;
  const std::uint8_t* bytes = bytes_at(frame, offset, have, scratch);
  const Verdict verdict = bytes == nullptr ? Verdict::arp_truncated : ArpView::check(bytes, left);
  if (verdict != Verdict::forward) return verdict;
  parsed.l3 = L3Kind::arp;
  parsed.l3_offset = offset;
  parsed.l3_length = ArpView::kHeaderLength;
  parsed.payload_offset = offset + ArpView::kHeaderLength;
  parsed.payload_length = 0;
  return Verdict::forward;
}

/// The IPv4 datagram at `parsed.l2_length`. One step of parse().
[[nodiscard]] WARPLINE_HD inline Verdict parse_ipv4(FrameRef frame, ParsedFrame& parsed) {
  const std::uint32_t offset = parsed.l2_length;
  const std::uint32_t left = frame.length - offset;
  std::uint8_t scratch[Ipv4View::kMaxHeaderLength];
  const std::uint8_t* bytes =
      left < Ipv4View::kHeaderLength ? nullptr : bytes_at(frame, offset, Ipv4View::kHeaderLength, scratch);
  if (bytes == nullptr) return Verdict::ipv4_truncated;
  const std::uint32_t header = Ipv4View(bytes).header_length();
  if (header > Ipv4View::kHeaderLength && header <= left) bytes = bytes_at(frame, offset, header, scratch);
  const Verdict verdict = bytes == nullptr ? Verdict::ipv4_truncated : Ipv4View::check(bytes, left);
  if (verdict != Verdict::forward) return verdict;
  const Ipv4View view(bytes);
  parsed.l3 = L3Kind::ipv4;
  parsed.l3_offset = offset;
  parsed.l3_length = header;
  parsed.protocol = view.protocol();
  parsed.fragment = view.is_fragment();
  parsed.source_routed = header > Ipv4View::kHeaderLength && view.is_source_routed();
  parsed.payload_offset = offset + header;
  parsed.payload_length = view.total_length() - header;
  return parsed.fragment ? Verdict::forward : parse_l4(frame, parsed.payload_offset, parsed.payload_length, parsed);
}

/// The IPv6 datagram at `parsed.l2_length`. One step of parse().
[[nodiscard]] WARPLINE_HD inline Verdict parse_ipv6(FrameRef frame, ParsedFrame& parsed) {
  const std::uint32_t offset = parsed.l2_length;
  const std::uint32_t left = frame.length - offset;
  std::uint8_t scratch[Ipv6View::kHeaderLength];
  const std::uint8_t* bytes =
      left < Ipv6View::kHeaderLength ? nullptr : bytes_at(frame, offset, Ipv6View::kHeaderLength, scratch);
  Verdict verdict = bytes == nullptr ? Verdict::ipv6_truncated : Ipv6View::check(bytes, left);
  if (verdict != Verdict::forward) return verdict;
  const Ipv6View view(bytes);
  const std::uint32_t begin = offset + Ipv6View::kHeaderLength;
  const std::uint32_t end = begin + view.payload_length();
  Ipv6Chain chain{view.next_header(), begin, false, false};
  if (is_ipv6_extension(chain.protocol)) {
    verdict = walk_ipv6_extensions(frame, begin, end, chain.protocol, chain);
    if (verdict != Verdict::forward) return verdict;
  }
  parsed.l3 = L3Kind::ipv6;
  parsed.l3_offset = offset;
  parsed.l3_length = chain.offset - offset;
  parsed.protocol = chain.protocol;
  parsed.fragment = chain.fragment;
  parsed.source_routed = chain.source_routed;
  parsed.payload_offset = chain.offset;
  parsed.payload_length = end - chain.offset;
  return parsed.fragment ? Verdict::forward : parse_l4(frame, chain.offset, end - chain.offset, parsed);
}

/// Dissects a whole frame. Reads only bytes of its segments, however it is cut; checksums are left to
/// verify_checksums(). Frames of unknown EtherType, 802.3 length or IP protocol are well formed and forwarded.
[[nodiscard]] WARPLINE_HD inline ParsedFrame parse(FrameRef frame) {
  ParsedFrame parsed;
  if (frame.count > kMaxSegments) {
    parsed.verdict = Verdict::too_many_segments;
    return parsed;
  }
  std::uint8_t scratch[EthernetView::kHeaderLength];
  const std::uint8_t* ethernet =
      frame.length < EthernetView::kHeaderLength ? nullptr : bytes_at(frame, 0, EthernetView::kHeaderLength, scratch);
  if (ethernet == nullptr) {
    parsed.verdict = Verdict::runt;
    return parsed;
  }
  std::uint16_t type = EthernetView(ethernet).ether_type();
  std::uint32_t offset = EthernetView::kHeaderLength;
  while (is_vlan(type)) {
    if (parsed.vlan_tags == kMaxVlanTags) {
      parsed.verdict = Verdict::vlan_nested;
      return parsed;
    }
    const std::uint8_t* tag = frame.length - offset < VlanView::kHeaderLength
                                  ? nullptr
                                  : bytes_at(frame, offset, VlanView::kHeaderLength, scratch);
    if (tag == nullptr) {
      parsed.verdict = Verdict::vlan_truncated;
      return parsed;
    }
    parsed.vlan[parsed.vlan_tags++] = VlanView(tag).control();
    type = VlanView(tag).ether_type();
    offset += VlanView::kHeaderLength;
  }
  parsed.ether_type = type;
  parsed.l2_length = offset;
  parsed.payload_offset = offset;
  parsed.payload_length = frame.length - offset;
  if (type == kEtherTypeIpv4) {
    parsed.verdict = parse_ipv4(frame, parsed);
  } else if (type == kEtherTypeIpv6) {
    parsed.verdict = parse_ipv6(frame, parsed);
  } else if (type == kEtherTypeArp) {
    parsed.verdict = parse_arp(frame, parsed);
  }
  return parsed;
}

}  // namespace warpline::packet
