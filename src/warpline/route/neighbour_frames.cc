// SPDX-License-Identifier: Apache-2.0
#include "warpline/route/neighbour_frames.h"

#include <algorithm>
#include <cstring>

#include "warpline/packet/checksum.h"
#include "warpline/packet/verify.h"
#include "warpline/route/prefix.h"

namespace warpline::route {
namespace {

constexpr MacAddress kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr std::uint8_t kNeighbourHopLimit = 255;  // proof of being on the link (RFC 4861, 7.1)

std::uint32_t write_arp(std::uint8_t* frame, const MacAddress& own_mac, const Ipv4Address& source,
                        const Ipv4Address& target, const std::optional<MacAddress>& to) {
  packet::emit(packet::EthernetHeader{to.value_or(kBroadcast), own_mac, packet::kEtherTypeArp}, frame);
  packet::emit(packet::ArpPacket{packet::kArpRequest, own_mac, source, to.value_or(MacAddress{}), target},
               frame + packet::EthernetView::kHeaderLength);
  return packet::EthernetView::kHeaderLength + packet::ArpView::kHeaderLength;
}

std::uint32_t write_solicitation(std::uint8_t* frame, const MacAddress& own_mac, const Ipv6Address& source,
                                 const Ipv6Address& target, const std::optional<MacAddress>& to) {
  constexpr std::uint16_t kLength = packet::NeighbourView::kHeaderLength + packet::NeighbourView::kOptionLength;
  const auto& last = target.bytes;
  // RFC 4291, 2.7.1, and RFC 2464, 7.
  const Ipv6Address group{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, last[13], last[14], last[15]}};
  const MacAddress group_mac{{0x33, 0x33, 0xff, last[13], last[14], last[15]}};
  std::uint8_t* ip = frame + packet::EthernetView::kHeaderLength;
  std::uint8_t* message = ip + packet::Ipv6View::kHeaderLength;
  packet::emit(packet::EthernetHeader{to.value_or(group_mac), own_mac, packet::kEtherTypeIpv6}, frame);
  packet::emit(packet::Ipv6Header{.payload_length = kLength,
                                  .next_header = packet::kProtocolIcmpv6,
                                  .hop_limit = kNeighbourHopLimit,
                                  .source = source,
                                  .destination = to ? target : group},
               ip);
  packet::emit(packet::NeighbourMessage{.target = target, .has_link_layer = true, .link_layer = own_mac}, message);
  packet::ChecksumSum sum = packet::pseudo_header_v6(ip + packet::Ipv6View::kSource, packet::kProtocolIcmpv6, kLength);
  sum.add(message, kLength);
  packet::store_be16(message + packet::IcmpView::kChecksum, sum.checksum());
  return kNeighbourRequestLength;
}

bool is_own(const RouterPort& port, const IpAddress& address) {
  return std::ranges::find(port.addresses, address, &InterfaceAddress::address) != port.addresses.end();
}

/// An address that a neighbour of `port` may have: a host's, not the port's own.
bool may_be_neighbour(const RouterPort& port, const IpAddress& address) {
  if (is_own(port, address)) return false;
  if (const auto* v6 = std::get_if<Ipv6Address>(&address)) return is_host(*v6) || is_link_local(*v6);
  return is_host(std::get<Ipv4Address>(address));
}

/// Whether `address` is link-local or covered by a prefix of the port's own addresses.
bool on_link_of(const RouterPort& port, const IpAddress& address) {
  const auto* v6 = std::get_if<Ipv6Address>(&address);
  if (v6 != nullptr && is_link_local(*v6)) return true;
  return std::ranges::any_of(port.addresses, [&](const InterfaceAddress& own) { return is_neighbour(own, address); });
}

bool is_station(const MacAddress& mac) { return (mac.bytes[0] & 1) == 0 && mac != MacAddress{}; }

std::optional<NeighbourNews> arp_news(FrameRef frame, const packet::ParsedFrame& parsed, const RouterPort& port) {
  if (frame.head_length() < parsed.l3_offset + packet::ArpView::kHeaderLength) return std::nullopt;
  packet::ArpPacket arp;
  if (packet::parse(frame.data() + parsed.l3_offset, packet::ArpView::kHeaderLength, arp) != Verdict::forward)
    return std::nullopt;
  if (arp.operation != packet::kArpRequest && arp.operation != packet::kArpReply) return std::nullopt;
  if (!is_station(arp.sender_mac) || !may_be_neighbour(port, arp.sender_ip)) return std::nullopt;
  // A packet to another host changes a known neighbour, which is then stale, and adds none (RFC 826, merge flag).
  const bool to_us = is_own(port, arp.target_ip);
  const bool reply = arp.operation == packet::kArpReply && to_us && arp.target_mac == port.mac;
  const bool on_link = on_link_of(port, arp.sender_ip);
  return NeighbourNews{
      arp.sender_ip,
      {.mac = arp.sender_mac, .answers = reply, .introduces = on_link && to_us && arp.operation == packet::kArpRequest},
      on_link};
}

std::optional<NeighbourNews> discovery_news(FrameRef frame, const packet::ParsedFrame& parsed, const RouterPort& port) {
  const std::uint32_t length = packet::l4_total(parsed);
  if (parsed.l3_length != packet::Ipv6View::kHeaderLength || frame.head_length() < parsed.l4_offset + length) {
    return std::nullopt;
  }
  const packet::Ipv6View ip(frame.data() + parsed.l3_offset);
  const std::uint8_t* bytes = frame.data() + parsed.l4_offset;
  const std::uint8_t type = packet::IcmpView(bytes).type();
  if (type != packet::kNeighbourSolicitation && type != packet::kNeighbourAdvertisement) return std::nullopt;
  packet::NeighbourMessage message;
  if (ip.hop_limit() != kNeighbourHopLimit || packet::parse(bytes, length, message) != Verdict::forward)
    return std::nullopt;
  const bool solicits = type == packet::kNeighbourSolicitation;
  const bool to_group = ip.destination()[0] == 0xff;
  const bool solicited = !solicits && (message.flags & packet::kAdvertisementSolicited) != 0;
  if (solicited && to_group) return std::nullopt;
  // A message to another host is routed, or dropped: it is not for this node (RFC 8200, 3).
  if (!to_group && !is_own(port, packet::load_address<Ipv6Address>(ip.destination()))) return std::nullopt;
  // A solicited advertisement need not repeat the MAC address that the solicitation was sent to (RFC 4861, 4.4).
  if (!message.has_link_layer && !solicited) return std::nullopt;
  const std::optional<MacAddress> mac = message.has_link_layer ? std::optional(message.link_layer) : std::nullopt;
  const IpAddress about = solicits ? packet::load_address<Ipv6Address>(ip.source()) : message.target;
  if ((mac && !is_station(*mac)) || !may_be_neighbour(port, about)) return std::nullopt;
  if (packet::verify_checksums(frame, parsed) != Verdict::forward) return std::nullopt;
  const bool on_link = on_link_of(port, about);
  return NeighbourNews{about,
                       {.mac = mac,
                        .answers = solicited,
                        .overrides = solicits || (message.flags & packet::kAdvertisementOverride) != 0,
                        .introduces = on_link && solicits && is_own(port, message.target)},
                       on_link};
}

}  // namespace

std::optional<IpAddress> asking_address(const RouterPort& port, const IpAddress& target) {
  std::optional<IpAddress> any;
  for (const InterfaceAddress& own : port.addresses) {
    if (own.address.index() != target.index()) continue;
    if (is_neighbour(own, target)) return own.address;
    if (!any) any = own.address;
  }
  return any;
}

namespace {

bool is_link_local_v6(const IpAddress& address) {
  const auto* const v6 = std::get_if<Ipv6Address>(&address);
  return v6 != nullptr && is_link_local(*v6);
}

template <typename Address>
unsigned common_bits(const Address& a, const Address& b) {
  unsigned bits = 0;
  while (bits < 8 * a.bytes.size() && covers(a, bits + 1, b)) ++bits;
  return bits;
}

}  // namespace

std::optional<IpAddress> error_source(const RouterPort& port, const IpAddress& to) {
  std::optional<IpAddress> best;
  unsigned most = 0;
  for (const InterfaceAddress& own : port.addresses) {
    if (own.address.index() != to.index() || is_link_local_v6(own.address) != is_link_local_v6(to)) continue;
    const unsigned common = std::visit(
        [&](const auto& address) { return common_bits(address, std::get<std::decay_t<decltype(address)>>(to)); },
        own.address);
    const unsigned bits = std::min<unsigned>(common, own.prefix_length);
    if (best && bits <= most) continue;
    best = own.address;
    most = bits;
  }
  return best;
}

std::uint32_t write_neighbour_request(std::span<std::uint8_t> frame, const MacAddress& own_mac, const IpAddress& source,
                                      const IpAddress& target, const std::optional<MacAddress>& to) {
  if (const auto* v4 = std::get_if<Ipv4Address>(&target)) {
    return write_arp(frame.data(), own_mac, std::get<Ipv4Address>(source), *v4, to);
  }
  return write_solicitation(frame.data(), own_mac, std::get<Ipv6Address>(source), std::get<Ipv6Address>(target), to);
}

std::optional<NeighbourNews> neighbour_news(FrameRef frame, const packet::ParsedFrame& parsed, const RouterPort& port) {
  if (is_drop(parsed.verdict) || parsed.fragment || parsed.vlan_tags != 0) return std::nullopt;
  if (frame.head_length() < packet::EthernetView::kHeaderLength) return std::nullopt;
  if (parsed.l3 == packet::L3Kind::arp) return arp_news(frame, parsed, port);
  if (parsed.l4 == packet::L4Kind::icmpv6) return discovery_news(frame, parsed, port);
  return std::nullopt;
}

}  // namespace warpline::route
