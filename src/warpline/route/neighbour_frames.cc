// SPDX-License-Identifier: Apache-2.0
#include "warpline/route/neighbour_frames.h"

#include <algorithm>
#include <cstring>

#include "warpline/packet/checksum.h"
#include "warpline/packet/verify.h"
#include "warpline/route/prefix.h"

namespace warpline {
namespace {

constexpr MacAddress kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr std::uint8_t kNeighbourHopLimit = 255;  // proof of being on the link (RFC 4861, 7.1)

std::uint32_t write_arp(std::uint8_t* frame, const MacAddress& own_mac, const Ipv4Address& source,
                        const Ipv4Address& target, const std::optional<MacAddress>& to) {
  emit(EthernetHeader{to.value_or(kBroadcast), own_mac, kEtherTypeArp}, frame);
  emit(ArpPacket{kArpRequest, own_mac, source, to.value_or(MacAddress{}), target}, frame + EthernetView::kHeaderLength);
  return EthernetView::kHeaderLength + ArpView::kHeaderLength;
}

std::uint32_t write_solicitation(std::uint8_t* frame, const MacAddress& own_mac, const Ipv6Address& source,
                                 const Ipv6Address& target, const std::optional<MacAddress>& to) {
  constexpr std::uint16_t kLength = NeighbourView::kHeaderLength + NeighbourView::kOptionLength;
  const auto& last = target.bytes;
  // RFC 4291, 2.7.1, and RFC 2464, 7.
  const Ipv6Address group{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, last[13], last[14], last[15]}};
  const MacAddress group_mac{{0x33, 0x33, 0xff, last[13], last[14], last[15]}};
  std::uint8_t* ip = frame + EthernetView::kHeaderLength;
  std::uint8_t* message = ip + Ipv6View::kHeaderLength;
  emit(EthernetHeader{to.value_or(group_mac), own_mac, kEtherTypeIpv6}, frame);
  emit(Ipv6Header{.payload_length = kLength,
                  .next_header = kProtocolIcmpv6,
                  .hop_limit = kNeighbourHopLimit,
                  .source = source,
                  .destination = to ? target : group},
       ip);
  emit(NeighbourMessage{.target = target, .has_link_layer = true, .link_layer = own_mac}, message);
  ChecksumSum sum = pseudo_header_v6(ip + Ipv6View::kSource, kProtocolIcmpv6, kLength);
  sum.add(message, kLength);
  store_be16(message + IcmpView::kChecksum, sum.checksum());
  return kNeighbourRequestLength;
}

bool is_own(const RouterPort& port, const IpAddress& address) {
  return std::ranges::find(port.addresses, address, &InterfaceAddress::address) != port.addresses.end();
}

/// A host's address on the link of `port`, not the port's own.
bool on_link_of(const RouterPort& port, const IpAddress& address) {
  if (is_own(port, address)) return false;
  const auto* v6 = std::get_if<Ipv6Address>(&address);
  if (v6 != nullptr && is_link_local(*v6)) return true;
  return std::ranges::any_of(port.addresses, [&](const InterfaceAddress& own) { return is_neighbour(own, address); });
}

bool is_station(const MacAddress& mac) { return (mac.bytes[0] & 1) == 0 && mac != MacAddress{}; }

std::optional<NeighbourNews> arp_news(FrameRef frame, const ParsedFrame& parsed, const RouterPort& port) {
  if (frame.head_length() < parsed.l3_offset + ArpView::kHeaderLength) return std::nullopt;
  ArpPacket arp;
  if (parse(frame.data() + parsed.l3_offset, ArpView::kHeaderLength, arp) != Verdict::forward) return std::nullopt;
  if (arp.operation != kArpRequest && arp.operation != kArpReply) return std::nullopt;
  if (!is_station(arp.sender_mac) || !on_link_of(port, arp.sender_ip)) return std::nullopt;
  const bool to_us = is_own(port, arp.target_ip);
  const bool reply = arp.operation == kArpReply && to_us && arp.target_mac == port.mac;
  return NeighbourNews{arp.sender_ip,
                       {.mac = arp.sender_mac, .answers = reply, .introduces = to_us && arp.operation == kArpRequest}};
}

std::optional<NeighbourNews> discovery_news(FrameRef frame, const ParsedFrame& parsed, const RouterPort& port) {
  const std::uint32_t length = l4_total(parsed);
  if (parsed.l3_length != Ipv6View::kHeaderLength || frame.head_length() < parsed.l4_offset + length) {
    return std::nullopt;
  }
  const Ipv6View ip(frame.data() + parsed.l3_offset);
  const std::uint8_t* bytes = frame.data() + parsed.l4_offset;
  const std::uint8_t type = IcmpView(bytes).type();
  if (type != kNeighbourSolicitation && type != kNeighbourAdvertisement) return std::nullopt;
  NeighbourMessage message;
  if (ip.hop_limit() != kNeighbourHopLimit || parse(bytes, length, message) != Verdict::forward) return std::nullopt;
  const bool solicits = type == kNeighbourSolicitation;
  const bool to_group = ip.destination()[0] == 0xff;
  const bool solicited = !solicits && (message.flags & kAdvertisementSolicited) != 0;
  if (solicited && to_group) return std::nullopt;
  // An answer to one station need not repeat its MAC address (RFC 4861, 4.4).
  if (!message.has_link_layer && !solicited) return std::nullopt;
  const MacAddress mac =
      message.has_link_layer ? message.link_layer : load_address<MacAddress>(EthernetView(frame.data()).source());
  const IpAddress about = solicits ? load_address<Ipv6Address>(ip.source()) : message.target;
  if (!is_station(mac) || !on_link_of(port, about)) return std::nullopt;
  if (verify_checksums(frame, parsed) != Verdict::forward) return std::nullopt;
  return NeighbourNews{about,
                       {.mac = mac,
                        .answers = solicited,
                        .overrides = solicits || (message.flags & kAdvertisementOverride) != 0,
                        .introduces = solicits && is_own(port, message.target)}};
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

std::uint32_t write_neighbour_request(std::span<std::uint8_t> frame, const MacAddress& own_mac, const IpAddress& source,
                                      const IpAddress& target, const std::optional<MacAddress>& to) {
  if (const auto* v4 = std::get_if<Ipv4Address>(&target)) {
    return write_arp(frame.data(), own_mac, std::get<Ipv4Address>(source), *v4, to);
  }
  return write_solicitation(frame.data(), own_mac, std::get<Ipv6Address>(source), std::get<Ipv6Address>(target), to);
}

std::optional<NeighbourNews> neighbour_news(FrameRef frame, const ParsedFrame& parsed, const RouterPort& port) {
  if (is_drop(parsed.verdict) || parsed.fragment || parsed.vlan_tags != 0) return std::nullopt;
  if (frame.head_length() < EthernetView::kHeaderLength) return std::nullopt;
  if (parsed.l3 == L3Kind::arp) return arp_news(frame, parsed, port);
  if (parsed.l4 == L4Kind::icmpv6) return discovery_news(frame, parsed, port);
  return std::nullopt;
}

}  // namespace warpline
