// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "warpline/base/address.h"
#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/packet/announcement.h"
#include "warpline/packet/listener.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/verify.h"

namespace warpline::packet {

/// How a Responder answers.
struct ResponderSettings {
  bool router = false;     ///< advertisements say that the sender is a router (RFC 4861, 4.4)
  bool queries = true;     ///< answers listener queries; false: whoever has the frame passes it on to others
  Ipv6Address reporter{};  ///< link-local source of reports; unspecified: the port has no such address (RFC 3590)
  /// Set: is told of stations that have the same address, and of listener queries that are passed on. It outlives the
  /// responder. On the host only.
  AddressWatch* watch = nullptr;
};

/// Answers ARP requests, neighbour solicitations, echo requests and multicast listener queries for one address, by
/// turning the request into its reply in place. Holds nothing but its addresses: any thread, host or device.
///
/// ARP that another station sends from the address (RFC 5227, 2.4), and advertisements of it (RFC 4862, 5.4.4), are
/// noted in ResponderSettings::watch.
///
/// Listener queries are answered with a report of the address's solicited-node group, without the random delay up to
/// the query's maximum (RFC 3810, 6.2; RFC 2710, 4).
class Responder {
 public:
  /// Bytes that the answer to a neighbour solicitation without options takes beyond the solicitation.
  static constexpr std::uint32_t kMostGrowth = NeighbourView::kOptionLength;

  /// Answers for `address`, an IPv4 or IPv6 one, as the station `mac`.
  Responder(const MacAddress& mac, const InterfaceAddress& address, const ResponderSettings& settings = {});

  /// True when `frame` asked for an answer and now is that answer, to be sent out of the port that it came from. False,
  /// and not a byte changed, for every other frame, malformed ones and wrong checksums among them. The answer to a
  /// neighbour solicitation that came to a group needs 32 bytes of ICMPv6 message: where the solicitation has no option
  /// the first segment must have kMostGrowth bytes behind it, or there is no answer (memory/answer_mbuf.h makes room).
  /// ARP, neighbour and listener discovery must lie in the first segment, echo in any.
  [[nodiscard]] WARPLINE_HD bool answer(FrameRef frame) const {
    return may_concern(frame) && may_ask(frame) && answer(frame, parse(frame));
  }

  /// The same for a frame already dissected.
  [[nodiscard]] WARPLINE_HD bool answer(FrameRef frame, const ParsedFrame& parsed) const {
    if (is_drop(parsed.verdict) || parsed.fragment || parsed.source_routed || !may_concern(frame)) return false;
    if (parsed.l3 == L3Kind::arp) return answer_arp(frame, parsed);
    if (parsed.l4 == L4Kind::icmp) return answer_echo(frame, parsed);
    if (parsed.l4 != L4Kind::icmpv6) return false;
    std::uint8_t scratch;
    const std::uint8_t* type = bytes_at(frame, parsed.l4_offset, 1, &scratch);
    if (type == nullptr) return false;
    if (*type == kNeighbourSolicitation) return answer_solicitation(frame, parsed);
    if (*type == kListenerQuery) return answer_listener_query(frame, parsed);
    if (*type == kNeighbourAdvertisement) note_advertisement(frame, parsed);
    return answer_echo(frame, parsed);
  }

  /// Whether the frame is a listener query: with several addresses, the group of each is reported by a frame of its
  /// own.
  [[nodiscard]] WARPLINE_HD static bool is_listener_query(FrameRef frame, const ParsedFrame& parsed) {
    std::uint8_t scratch;
    if (is_drop(parsed.verdict) || parsed.l4 != L4Kind::icmpv6) return false;
    const std::uint8_t* type = bytes_at(frame, parsed.l4_offset, 1, &scratch);
    return type != nullptr && *type == kListenerQuery;
  }
  /// Whether both report the same group, or neither any.
  [[nodiscard]] bool same_group(const Responder& other) const {
    return v4_ == other.v4_ && (v4_ || equal_bytes(ip_ + 13, other.ip_ + 13, 3));
  }

 private:
  static constexpr std::uint32_t kMacLength = 6;
  static constexpr std::uint8_t kHopLimit = 64;            ///< of echo replies
  static constexpr std::uint8_t kNeighbourHopLimit = 255;  ///< proof of being on the link (RFC 4861, 7.1)

  /// To our MAC address or to a group, from no group, and the Ethernet header lies in one piece.
  [[nodiscard]] WARPLINE_HD bool may_concern(FrameRef frame) const {
    if (frame.head_length() < EthernetView::kHeaderLength) return false;
    const EthernetView view(frame.data());
    if ((view.source()[0] & 1) != 0) return false;
    return (view.destination()[0] & 1) != 0 || equal_bytes(view.destination(), mac_, kMacLength);
  }

  /// Spares the dissector most traffic: false where one look at an untagged frame's protocol says that it asks nothing.
  [[nodiscard]] WARPLINE_HD bool may_ask(FrameRef frame) const {
    const std::uint16_t type = EthernetView(frame.data()).ether_type();
    const std::uint8_t* ip = frame.data() + EthernetView::kHeaderLength;
    const std::uint32_t have = frame.head_length() - EthernetView::kHeaderLength;
    if (type == kEtherTypeIpv4 && have > Ipv4View::kProtocol) return ip[Ipv4View::kProtocol] == kProtocolIcmp;
    if (type == kEtherTypeIpv6 && have > Ipv6View::kNextHeader) {
      return ip[Ipv6View::kNextHeader] == kProtocolIcmpv6 || is_ipv6_extension(ip[Ipv6View::kNextHeader]);
    }
    return type == kEtherTypeArp || type == kEtherTypeIpv4 || type == kEtherTypeIpv6 || is_vlan(type);
  }

  [[nodiscard]] WARPLINE_HD bool answer_arp(FrameRef frame, const ParsedFrame& parsed) const {
    if (!v4_ || frame.head_length() < parsed.l3_offset + ArpView::kHeaderLength) return false;
    std::uint8_t* arp = frame.data() + parsed.l3_offset;
    const ArpView view(arp);
    if ((view.sender_mac()[0] & 1) != 0) return false;
    if (equal_bytes(view.sender_ip(), ip_, 4)) {
      note_conflict(view.sender_mac());
      return false;
    }
    if (view.operation() != kArpRequest || !equal_bytes(view.target_ip(), ip_, 4)) return false;
    std::memcpy(frame.data() + EthernetView::kDestination, view.sender_mac(), kMacLength);
    std::memcpy(frame.data() + EthernetView::kSource, mac_, kMacLength);
    store_be16(arp + ArpView::kOperation, kArpReply);
    std::memcpy(arp + ArpView::kTargetMac, arp + ArpView::kSenderMac, kMacLength + 4);  // the address pair
    std::memcpy(arp + ArpView::kSenderMac, mac_, kMacLength);
    std::memcpy(arp + ArpView::kSenderIp, ip_, 4);
    return true;
  }

  /// `mac` says that it has our address.
  WARPLINE_HD void note_conflict([[maybe_unused]] const std::uint8_t* mac) const {
#ifndef __CUDA_ARCH__
    if (watch_ != nullptr && !equal_bytes(mac, mac_, kMacLength)) watch_->note_conflict(mac);
#endif
  }
  WARPLINE_HD void note_query([[maybe_unused]] bool version_1) const {
#ifndef __CUDA_ARCH__
    if (watch_ != nullptr) watch_->note_query(version_1 ? AddressWatch::kQueryV1 : AddressWatch::kQueryV2);
#endif
  }
  WARPLINE_HD void note_advertisement(FrameRef frame, const ParsedFrame& parsed) const;
  [[nodiscard]] WARPLINE_HD bool answer_echo(FrameRef frame, const ParsedFrame& parsed) const;
  [[nodiscard]] WARPLINE_HD bool answer_solicitation(FrameRef frame, const ParsedFrame& parsed) const;
  [[nodiscard]] WARPLINE_HD bool answer_listener_query(FrameRef frame, const ParsedFrame& parsed) const;

  /// An address that a host may have: not unspecified, loopback, group or broadcast.
  [[nodiscard]] WARPLINE_HD static bool is_host(const std::uint8_t* address, bool v4) {
    if (v4) return address[0] != 0 && address[0] != 127 && address[0] < 224;
    return address[0] != 0xff && !is_unspecified(address);
  }

  [[nodiscard]] WARPLINE_HD static bool is_unspecified(const std::uint8_t* address) {
    for (int i = 0; i < 16; ++i) {
      if (address[i] != 0) return false;
    }
    return true;
  }

  std::uint8_t mac_[kMacLength];
  bool v4_;
  bool router_;
  bool queries_;
  Ipv6Address reporter_;
  AddressWatch* watch_;
  std::uint8_t ip_[16] = {};  ///< IPv4: the first four bytes
};

WARPLINE_HD inline bool Responder::answer_echo(FrameRef frame, const ParsedFrame& parsed) const {
  const bool v4 = parsed.l4 == L4Kind::icmp;
  if (v4 != v4_ || !equal_bytes(frame.data() + EthernetView::kDestination, mac_, kMacLength)) return false;
  const std::uint32_t size = v4 ? 4 : 16;
  const std::uint32_t source_at = parsed.l3_offset + (v4 ? Ipv4View::kSource : Ipv6View::kSource);
  std::uint8_t icmp_scratch[2];
  std::uint8_t addresses_scratch[32];
  const std::uint8_t* icmp = bytes_at(frame, parsed.l4_offset, 2, icmp_scratch);
  const std::uint8_t* addresses = bytes_at(frame, source_at, 2 * size, addresses_scratch);
  if (icmp == nullptr || addresses == nullptr) return false;
  if (icmp[0] != (v4 ? kIcmpEchoRequest : kIcmpv6EchoRequest) || icmp[1] != 0) return false;
  const bool for_us = equal_bytes(addresses + size, ip_, size) && !equal_bytes(addresses, ip_, size);
  if (!for_us || !is_host(addresses, v4) || verify_checksums(frame, parsed) != Verdict::forward) return false;

  swap_macs(frame.data());
  std::uint8_t swapped[32];
  std::memcpy(swapped, addresses + size, size);
  std::memcpy(swapped + size, addresses, size);
  scatter(frame, source_at, swapped, 2 * size);
  const std::uint8_t hop_limit = kHopLimit;
  scatter(frame, parsed.l3_offset + (v4 ? Ipv4View::kTimeToLive : Ipv6View::kHopLimit), &hop_limit, 1);
  const std::uint8_t type = v4 ? kIcmpEchoReply : kIcmpv6EchoReply;
  scatter(frame, parsed.l4_offset, &type, 1);
  update_checksums(frame, parsed);
  return true;
}

/// RFC 4861, 7.1.2; RFC 4862, 5.4.4.
WARPLINE_HD inline void Responder::note_advertisement(FrameRef frame, const ParsedFrame& parsed) const {
  const std::uint32_t length = l4_total(parsed);
  if (v4_ || parsed.l3_length != Ipv6View::kHeaderLength || length < NeighbourView::kHeaderLength) return;
  if (frame.head_length() < parsed.l4_offset + length) return;
  const Ipv6View ipv6(frame.data() + parsed.l3_offset);
  const NeighbourView advertisement(frame.data() + parsed.l4_offset, length);
  if (ipv6.hop_limit() != kNeighbourHopLimit || !equal_bytes(advertisement.target(), ip_, 16)) return;
  const std::uint8_t* option = advertisement.link_layer(kOptionTargetLinkLayer);
  const std::uint8_t* const mac = option != nullptr ? option : EthernetView(frame.data()).source();
  if ((mac[0] & 1) != 0 || verify_checksums(frame, parsed) != Verdict::forward) return;
  note_conflict(mac);
}

/// RFC 4861, 7.1.1 and 7.2.4.
WARPLINE_HD inline bool Responder::answer_solicitation(FrameRef frame, const ParsedFrame& parsed) const {
  constexpr std::uint32_t kFullLength = NeighbourView::kHeaderLength + NeighbourView::kOptionLength;
  const std::uint32_t length = l4_total(parsed);
  if (v4_ || parsed.l3_length != Ipv6View::kHeaderLength) return false;
  if (frame.head_length() < parsed.l4_offset + length) return false;
  std::uint8_t* ethernet = frame.data();
  std::uint8_t* ip = ethernet + parsed.l3_offset;
  std::uint8_t* message = ethernet + parsed.l4_offset;
  const Ipv6View ipv6(ip);
  const NeighbourView solicitation(message, length);
  const Ipv6Address group = solicited_node(load_address<Ipv6Address>(ip_));
  const bool to_group = equal_bytes(ipv6.destination(), group.bytes.data(), 16);
  const bool to_us = to_group || equal_bytes(ipv6.destination(), ip_, 16);
  if (!to_us || ipv6.hop_limit() != kNeighbourHopLimit || !equal_bytes(solicitation.target(), ip_, 16)) return false;
  if (ipv6.source()[0] == 0xff || equal_bytes(ipv6.source(), ip_, 16)) return false;
  const bool probe = is_unspecified(ipv6.source());  // duplicate address detection (RFC 4862, 5.4)
  const std::uint8_t* asker = solicitation.link_layer(kOptionSourceLinkLayer);
  if (probe && (!to_group || asker != nullptr)) return false;
  if (asker != nullptr && (asker[0] & 1) != 0) return false;
  // The option may be left out where the solicitation was unicast: its sender knows our MAC address (7.2.4).
  const bool full = frame.head_length() - parsed.l4_offset >= kFullLength;
  if (!full && to_group) return false;
  const std::uint32_t reply_length = full ? kFullLength : NeighbourView::kHeaderLength;
  if (verify_checksums(frame, parsed) != Verdict::forward) return false;

  if (probe) {
    store_address(ethernet + EthernetView::kDestination, group_mac(all_nodes()));
    store_address(ip + Ipv6View::kDestination, all_nodes());
  } else {
    std::memcpy(ethernet + EthernetView::kDestination, asker != nullptr ? asker : ethernet + EthernetView::kSource,
                kMacLength);
    std::memcpy(ip + Ipv6View::kDestination, ip + Ipv6View::kSource, 16);
  }
  std::memcpy(ethernet + EthernetView::kSource, mac_, kMacLength);
  std::memcpy(ip + Ipv6View::kSource, ip_, 16);
  store_be16(ip + Ipv6View::kPayloadLength,
             static_cast<std::uint16_t>(reply_length));  // what was longer is padding now

  NeighbourMessage reply;
  reply.type = kNeighbourAdvertisement;
  reply.flags = kAdvertisementOverride | (probe ? 0 : kAdvertisementSolicited) | (router_ ? kAdvertisementRouter : 0);
  reply.target = load_address<Ipv6Address>(ip_);
  reply.has_link_layer = full;
  reply.link_layer = load_address<MacAddress>(mac_);
  emit(reply, message);
  ParsedFrame answered = parsed;
  answered.payload_length = reply_length - parsed.l4_length;
  update_checksums(frame, answered);
  return true;
}

/// RFC 3810, 5.1.14, 5.1.15 and 6.2; a query of version 1 gets a report of that version (8.2.1).
WARPLINE_HD inline bool Responder::answer_listener_query(FrameRef frame, const ParsedFrame& parsed) const {
  constexpr std::uint32_t kHeaders = Ipv6View::kHeaderLength + kListenerAlertLength;
  const std::uint32_t length = l4_total(parsed);
  if (v4_ || parsed.l3_length != kHeaders || frame.head_length() < parsed.l4_offset + length) return false;
  const bool version_1 = length == kListenerV1Length;
  if (!version_1 && length < kListenerQueryLength) return false;  // RFC 3810, 8.1
  std::uint8_t* const ethernet = frame.data();
  std::uint8_t* const ip = ethernet + parsed.l3_offset;
  const std::uint8_t* const query = ethernet + parsed.l4_offset;
  const Ipv6View ipv6(ip);
  const bool alert = ip[Ipv6View::kNextHeader] == kExtensionHopByHop &&
                     has_listener_alert(ip + Ipv6View::kHeaderLength, kListenerAlertLength);
  if (!alert || !is_link_local(ipv6.source()) || ipv6.hop_limit() != 1) return false;
  const Ipv6Address group = solicited_node(load_address<Ipv6Address>(ip_));
  const Ipv6Address everybody = all_nodes();
  const auto is = [](const std::uint8_t* bytes, const Ipv6Address& address) {
    return equal_bytes(bytes, address.bytes.data(), 16);
  };
  const bool general = is_unspecified(query + kListenerGroup);
  if (!general && !is(query + kListenerGroup, group)) return false;
  const std::uint8_t* const to = ipv6.destination();
  if (!is(to, everybody) && !is(to, group) && !equal_bytes(to, ip_, 16)) return false;
  const std::uint16_t sources = version_1 ? 0 : load_be16(query + kListenerQuerySources);
  if (length < kListenerQueryLength + 16U * sources && !version_1) return false;
  if (general && sources != 0) return false;
  if (verify_checksums(frame, parsed) != Verdict::forward) return false;
  if (!queries_) {
    note_query(version_1);
    return false;
  }

  // All sources are wanted: of those asked about, each one. They lie where the report has them.
  const ListenerRecord record = sources != 0 ? ListenerRecord::is_include : ListenerRecord::is_exclude;
  emit_listener_report(ip, reporter_, group, record, sources, version_1);
  store_address(ethernet + EthernetView::kDestination, group_mac(version_1 ? group : all_listener_routers()));
  std::memcpy(ethernet + EthernetView::kSource, mac_, kMacLength);
  return true;
}

/// The link-local one of `addresses`, which reports of groups come from; unspecified if there is none.
[[nodiscard]] Ipv6Address reporter_of(std::span<const InterfaceAddress> addresses);

}  // namespace warpline::packet
