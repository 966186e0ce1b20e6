// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/announcement.h"

#include <algorithm>

#include "warpline/packet/headers/arp.h"
#include "warpline/packet/listener.h"
#include "warpline/packet/responder.h"

namespace warpline::packet {
namespace {

constexpr MacAddress kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr std::size_t kShortest = 60;  // IEEE 802.3, without FCS

AnnouncedFrame group_report(const MacAddress& mac, const Ipv6Address& reporter, const Ipv6Address& group,
                            ReportReason reason) {
  const bool v1 = reason == ReportReason::query_v1;
  const bool joined = reason == ReportReason::joined;
  AnnouncedFrame frame(v1 ? kListenerReportLengthV1 : kListenerReportLength);
  emit(EthernetHeader{group_mac(v1 ? group : all_listener_routers()), mac, kEtherTypeIpv6}, frame.data());
  emit_listener_report(frame.data() + EthernetView::kHeaderLength, reporter, group,
                       joined ? ListenerRecord::to_exclude : ListenerRecord::is_exclude, 0, v1);
  return frame;
}

}  // namespace

AnnouncedFrame arp_announcement(const MacAddress& mac, const Ipv4Address& own) {
  AnnouncedFrame frame(kShortest);
  emit(EthernetHeader{kBroadcast, mac, kEtherTypeArp}, frame.data());
  emit(ArpPacket{kArpRequest, mac, own, {}, own}, frame.data() + EthernetView::kHeaderLength);
  return frame;
}

std::vector<AnnouncedFrame> group_reports(const MacAddress& mac, std::span<const InterfaceAddress> addresses,
                                          ReportReason reason) {
  std::vector<AnnouncedFrame> frames;
  std::vector<Ipv6Address> groups;
  for (const InterfaceAddress& own : addresses) {
    const auto* const v6 = std::get_if<Ipv6Address>(&own.address);
    if (v6 == nullptr || std::ranges::find(groups, solicited_node(*v6)) != groups.end()) continue;
    groups.push_back(solicited_node(*v6));
    frames.push_back(group_report(mac, reporter_of(addresses), groups.back(), reason));
  }
  return frames;
}

}  // namespace warpline::packet
