// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/announcement.h"

#include <algorithm>

#include "warpline/packet/headers/arp.h"
#include "warpline/packet/listener.h"
#include "warpline/packet/responder.h"

namespace warpline::packet {
namespace {

using Frame = std::vector<std::uint8_t>;

constexpr MacAddress kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr std::size_t kShortest = 60;  // IEEE 802.3, without FCS

Frame arp_announcement(const MacAddress& mac, const Ipv4Address& own) {
  Frame frame(kShortest);
  emit(EthernetHeader{kBroadcast, mac, kEtherTypeArp}, frame.data());
  emit(ArpPacket{kArpRequest, mac, own, {}, own}, frame.data() + EthernetView::kHeaderLength);
  return frame;
}

Frame group_report(const MacAddress& mac, const Ipv6Address& reporter, const Ipv6Address& group) {
  Frame frame(kListenerReportLength);
  emit(EthernetHeader{group_mac(all_listener_routers()), mac, kEtherTypeIpv6}, frame.data());
  emit_listener_report(frame.data() + EthernetView::kHeaderLength, reporter, group, ListenerRecord::to_exclude, 0,
                       false);
  return frame;
}

}  // namespace

std::vector<Frame> announcements(const MacAddress& mac, std::span<const InterfaceAddress> addresses) {
  std::vector<Frame> frames;
  std::vector<Ipv6Address> groups;
  for (const InterfaceAddress& own : addresses) {
    if (const auto* const v4 = std::get_if<Ipv4Address>(&own.address)) frames.push_back(arp_announcement(mac, *v4));
  }
  for (const InterfaceAddress& own : addresses) {
    const auto* const v6 = std::get_if<Ipv6Address>(&own.address);
    if (v6 == nullptr || std::ranges::find(groups, solicited_node(*v6)) != groups.end()) continue;
    groups.push_back(solicited_node(*v6));
    frames.push_back(group_report(mac, reporter_of(addresses), groups.back()));
  }
  return frames;
}

}  // namespace warpline::packet
