// SPDX-License-Identifier: Apache-2.0
#include "frames/malformed_frames.h"

#include <utility>

#include "warpline/packet/frame_testing.h"

namespace warpline {
namespace {

using packet::operator+;

using Frames = std::vector<MalformedFrame>;

constexpr std::size_t kL3 = 14;        // of an untagged frame
constexpr std::size_t kL4 = kL3 + 20;  // over IPv4 without options
constexpr std::size_t kV6L4 = kL3 + 40;

packet::FrameBytes cut(packet::FrameBytes frame, std::size_t length) {
  frame.resize(length);
  return frame;
}

packet::FrameBytes set8(packet::FrameBytes frame, std::size_t at, int value) {
  frame.at(at) = static_cast<std::uint8_t>(value);
  return frame;
}

packet::FrameBytes set16(packet::FrameBytes frame, std::size_t at, int value) {
  return set8(set8(std::move(frame), at, value >> 8), at + 1, value & 0xff);
}

packet::FrameBytes flip(packet::FrameBytes frame, std::size_t at) {
  frame.at(at) ^= 0x10;
  return frame;
}

packet::FrameBytes flip_last(const packet::FrameBytes& frame) { return flip(frame, frame.size() - 1); }

packet::FrameBytes udp4(std::size_t payload = 18) {
  return packet::with_checksums(
      packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(payload))));
}
packet::FrameBytes udp6(std::size_t payload = 18) {
  return packet::with_checksums(
      packet::ipv6_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(payload))));
}
packet::FrameBytes tcp4(const packet::FrameBytes& options = {}) {
  return packet::with_checksums(
      packet::ipv4_frame(packet::kProtocolTcp, packet::tcp_segment(packet::counting(11), options)));
}
packet::FrameBytes tcp6() {
  return packet::with_checksums(packet::ipv6_frame(packet::kProtocolTcp, packet::tcp_segment(packet::counting(11))));
}
packet::FrameBytes icmp4(std::size_t payload = 32) {
  return packet::with_checksums(packet::ipv4_frame(
      packet::kProtocolIcmp, packet::icmp_message(packet::kIcmpEchoRequest, packet::counting(payload))));
}
packet::FrameBytes icmp6(std::size_t payload = 32) {
  return packet::with_checksums(packet::ipv6_frame(
      packet::kProtocolIcmpv6, packet::icmp_message(packet::kIcmpv6EchoRequest, packet::counting(payload))));
}

packet::FrameBytes solicitation(const packet::FrameBytes& options) {
  packet::FrameBytes message(packet::NeighbourView::kHeaderLength);
  packet::NeighbourMessage fields;
  fields.target = packet::kTestDestinationV6;
  packet::emit(fields, message.data());
  return packet::with_checksums(packet::ipv6_frame(packet::kProtocolIcmpv6, message + options, 255));
}

/// An extension header of eight bytes whose last six are PadN.
packet::FrameBytes extension(std::uint8_t next) { return {next, 0, 1, 4, 0, 0, 0, 0}; }

void add_ethernet(Frames& out) {
  for (const std::size_t length : {1, 6, 12, 13}) {
    out.push_back({"ethernet_of_" + std::to_string(length) + "_bytes", cut(udp4(), length), Verdict::runt});
  }
}

void add_vlan(Frames& out) {
  const packet::FrameBytes one = packet::tagged(udp4(), packet::kEtherTypeVlan, 5);
  for (const std::size_t have : {0, 1, 2, 3}) {
    out.push_back({"vlan_tag_of_" + std::to_string(have) + "_bytes", cut(one, 14 + have), Verdict::vlan_truncated});
  }
  const packet::FrameBytes two = packet::tagged(one, packet::kEtherTypeService, 100);
  const packet::FrameBytes old = packet::tagged(one, packet::kEtherTypeOldQinq, 100);
  out.push_back({"service_tag_missing", cut(two, 14), Verdict::vlan_truncated});
  out.push_back({"customer_tag_missing", cut(two, 18), Verdict::vlan_truncated});
  out.push_back({"customer_tag_of_3_bytes", cut(two, 21), Verdict::vlan_truncated});
  out.push_back({"old_qinq_tag_of_2_bytes", cut(old, 16), Verdict::vlan_truncated});
  out.push_back({"three_customer_tags",
                 packet::tagged(packet::tagged(one, packet::kEtherTypeVlan, 6), packet::kEtherTypeVlan, 7),
                 Verdict::vlan_nested});
  out.push_back({"service_tag_over_two_customer_tags",
                 packet::tagged(packet::tagged(one, packet::kEtherTypeVlan, 6), packet::kEtherTypeService, 7),
                 Verdict::vlan_nested});
  out.push_back({"three_old_qinq_tags",
                 packet::tagged(packet::tagged(old, packet::kEtherTypeOldQinq, 1), packet::kEtherTypeOldQinq, 2),
                 Verdict::vlan_nested});
  out.push_back({"four_tags", packet::tagged(packet::tagged(two, packet::kEtherTypeVlan, 6), packet::kEtherTypeVlan, 7),
                 Verdict::vlan_nested});
  out.push_back({"third_tag_announced_but_missing", cut(packet::tagged(two, packet::kEtherTypeVlan, 6), 22),
                 Verdict::vlan_nested});
}

void add_arp(Frames& out) {
  packet::ArpPacket packet;
  packet.sender_mac = packet::kTestSourceMac;
  packet.sender_ip = packet::kTestSourceV4;
  packet.target_ip = packet::kTestDestinationV4;
  const packet::FrameBytes good = packet::arp_frame(packet);
  for (const std::size_t have : {0, 1, 7, 8, 27}) {
    out.push_back({"arp_of_" + std::to_string(have) + "_bytes", cut(good, kL3 + have), Verdict::arp_truncated});
  }
  out.push_back({"tagged_arp_of_27_bytes", cut(packet::tagged(good, packet::kEtherTypeVlan, 5), 18 + 27),
                 Verdict::arp_truncated});
  const auto bad = [&](const char* name, packet::FrameBytes bytes) {
    out.push_back({name, std::move(bytes), Verdict::arp_malformed});
  };
  bad("arp_hardware_type_0", set16(good, kL3 + packet::ArpView::kHardwareType, 0));
  bad("arp_hardware_type_ieee802", set16(good, kL3 + packet::ArpView::kHardwareType, 6));
  bad("arp_protocol_type_0", set16(good, kL3 + packet::ArpView::kProtocolType, 0));
  bad("arp_protocol_type_ipv6", set16(good, kL3 + packet::ArpView::kProtocolType, packet::kEtherTypeIpv6));
  bad("arp_hardware_length_0", set8(good, kL3 + packet::ArpView::kHardwareLength, 0));
  bad("arp_hardware_length_8", set8(good, kL3 + packet::ArpView::kHardwareLength, 8));
  bad("arp_hardware_length_255", set8(good, kL3 + packet::ArpView::kHardwareLength, 255));
  bad("arp_protocol_length_0", set8(good, kL3 + packet::ArpView::kProtocolLength, 0));
  bad("arp_protocol_length_16", set8(good, kL3 + packet::ArpView::kProtocolLength, 16));
  bad("arp_lengths_exchanged", set16(good, kL3 + packet::ArpView::kHardwareLength, 0x0406));
  bad("arp_short_and_of_wrong_type", cut(set16(good, kL3, 6), kL3 + 8));
}

void add_ipv4(Frames& out) {
  const packet::FrameBytes good = udp4();
  const int datagram = static_cast<int>(good.size() - kL3);
  const auto add = [&](std::string name, packet::FrameBytes bytes, Verdict verdict) {
    out.push_back({std::move(name), std::move(bytes), verdict});
  };
  for (const std::size_t have : {0, 1, 19}) {
    add("ipv4_header_of_" + std::to_string(have) + "_bytes", cut(good, kL3 + have), Verdict::ipv4_truncated);
  }
  const packet::FrameBytes one_tag = packet::tagged(good, packet::kEtherTypeVlan, 5);
  add("tagged_ipv4_header_of_19_bytes", cut(one_tag, 18 + 19), Verdict::ipv4_truncated);
  add("doubly_tagged_ipv4_header_missing", cut(packet::tagged(one_tag, packet::kEtherTypeService, 6), 22),
      Verdict::ipv4_truncated);
  for (const int version : {0, 5, 6, 15}) {
    add("ipv4_version_" + std::to_string(version), set8(good, kL3, version << 4 | 5), Verdict::ipv4_version);
  }
  add("tagged_ipv4_version_0", set8(one_tag, 18, 5), Verdict::ipv4_version);
  for (const int ihl : {0, 1, 4}) {
    add("ipv4_ihl_" + std::to_string(ihl), set8(good, kL3, 0x40 | ihl), Verdict::ipv4_header_length);
  }
  add("ipv4_ihl_past_the_frame", set8(good, kL3, 0x4f), Verdict::ipv4_header_length);
  add("ipv4_ihl_past_the_datagram", set16(set8(good, kL3, 0x46), kL3 + 2, 20), Verdict::ipv4_header_length);
  add("ipv4_ihl_a_byte_past_the_datagram", set16(set8(udp4(40), kL3, 0x4f), kL3 + 2, 59), Verdict::ipv4_header_length);
  add("ipv4_total_length_0", set16(good, kL3 + 2, 0), Verdict::ipv4_total_length);
  add("ipv4_total_length_19", set16(good, kL3 + 2, 19), Verdict::ipv4_total_length);
  add("ipv4_total_length_a_byte_past_the_frame", set16(good, kL3 + 2, datagram + 1), Verdict::ipv4_total_length);
  add("ipv4_total_length_65535", set16(good, kL3 + 2, 0xffff), Verdict::ipv4_total_length);
  add("ipv4_frame_cut_by_a_byte", cut(good, good.size() - 1), Verdict::ipv4_total_length);
  add("tagged_ipv4_total_length_past_the_frame", set16(one_tag, 20, datagram + 4), Verdict::ipv4_total_length);

  const auto option = [&](const char* name, const packet::FrameBytes& options) {
    add(name,
        packet::with_checksums(
            packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(18)), {}, options)),
        Verdict::ipv4_options);
  };
  option("ipv4_option_length_0", {30, 0, 0, 0});
  option("ipv4_option_length_1", {30, 1, 0, 0});
  option("ipv4_option_past_the_header", {30, 5, 0, 0});
  option("ipv4_option_length_255", {1, 30, 255, 0});
  option("ipv4_option_without_length", {1, 1, 1, 30});
  option("ipv4_record_route_length_2", {7, 2, 0, 0});
  option("ipv4_record_route_pointer_3", {7, 7, 3, 0, 0, 0, 0, 0});
  option("ipv4_loose_route_of_half_an_address", {131, 5, 4, 0, 0, 0, 0, 0});
  option("ipv4_strict_route_pointer_0", {137, 7, 0, 0, 0, 0, 0, 0});
  option("ipv4_timestamp_length_3", {68, 3, 5, 0});
  option("ipv4_timestamp_pointer_4", {68, 8, 4, 0, 0, 0, 0, 0});
  option("ipv4_stream_id_length_3", {136, 3, 0, 0});
  option("ipv4_router_alert_length_2", {148, 2, 0, 0});

  packet::Ipv4Header last;
  last.fragment_offset = 8189;
  add("ipv4_fragment_past_byte_65535", packet::ipv4_frame(packet::kProtocolUdp, packet::counting(24), last),
      Verdict::ip_fragment);
  last.fragment_offset = 8191;
  add("ipv4_fragment_ping_of_death", packet::ipv4_frame(packet::kProtocolIcmp, packet::counting(1000), last),
      Verdict::ip_fragment);
  packet::Ipv4Header middle;
  middle.more_fragments = true;
  add("ipv4_first_fragment_of_odd_length", packet::ipv4_frame(packet::kProtocolUdp, packet::counting(23), middle),
      Verdict::ip_fragment);
  middle.fragment_offset = 3;
  add("ipv4_middle_fragment_of_12_bytes", packet::ipv4_frame(packet::kProtocolUdp, packet::counting(12), middle),
      Verdict::ip_fragment);

  const int sum = packet::load_be16(good.data() + kL3 + packet::Ipv4View::kChecksum);
  const auto checksum = [&](const char* name, packet::FrameBytes bytes) {
    add(name, std::move(bytes), Verdict::ipv4_checksum);
  };
  checksum("ipv4_checksum_one_too_high", set16(good, kL3 + packet::Ipv4View::kChecksum, sum + 1));
  checksum("ipv4_checksum_0", set16(good, kL3 + packet::Ipv4View::kChecksum, 0));
  checksum("ipv4_checksum_inverted", set16(good, kL3 + packet::Ipv4View::kChecksum, ~sum));
  checksum("ipv4_checksum_byte_swapped", set16(good, kL3 + packet::Ipv4View::kChecksum, (sum & 0xff) << 8 | sum >> 8));
  checksum("ipv4_time_to_live_changed", flip(good, kL3 + packet::Ipv4View::kTimeToLive));
  checksum("ipv4_source_changed", flip(good, kL3 + packet::Ipv4View::kSource + 3));
  checksum("tagged_ipv4_identification_changed", flip(one_tag, 18 + packet::Ipv4View::kIdentification));
  const packet::FrameBytes alert =
      packet::with_checksums(packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram({}), {}, {148, 4, 0, 0}));
  checksum("ipv4_option_changed", flip(alert, kL3 + 23));
  middle.fragment_offset = 2;
  checksum("ipv4_fragment_destination_changed",
           flip(packet::ipv4_frame(packet::kProtocolUdp, packet::counting(16), middle),
                kL3 + packet::Ipv4View::kDestination));
}

void add_ipv6(Frames& out) {
  const packet::FrameBytes good = udp6();
  const packet::FrameBytes one_tag = packet::tagged(good, packet::kEtherTypeVlan, 5);
  const packet::FrameBytes udp = packet::udp_datagram(packet::counting(8));
  const int payload = static_cast<int>(good.size() - kV6L4);
  const auto add = [&](std::string name, packet::FrameBytes bytes, Verdict verdict) {
    out.push_back({std::move(name), std::move(bytes), verdict});
  };
  for (const std::size_t have : {0, 1, 39}) {
    add("ipv6_header_of_" + std::to_string(have) + "_bytes", cut(good, kL3 + have), Verdict::ipv6_truncated);
  }
  add("tagged_ipv6_header_of_39_bytes", cut(one_tag, 18 + 39), Verdict::ipv6_truncated);
  for (const int version : {0, 4, 7, 15}) {
    add("ipv6_version_" + std::to_string(version), set8(good, kL3, version << 4), Verdict::ipv6_version);
  }
  add("ipv6_payload_length_a_byte_past_the_frame", set16(good, kL3 + 4, payload + 1), Verdict::ipv6_payload_length);
  add("ipv6_payload_length_65535", set16(good, kL3 + 4, 0xffff), Verdict::ipv6_payload_length);
  add("ipv6_frame_cut_by_a_byte", cut(good, good.size() - 1), Verdict::ipv6_payload_length);
  add("tagged_ipv6_payload_length_past_the_frame", set16(one_tag, 22, payload + 4), Verdict::ipv6_payload_length);

  const auto chain = [&](const char* name, std::uint8_t next, const packet::FrameBytes& bytes) {
    add(name, packet::ipv6_frame(next, bytes), Verdict::ipv6_extension);
  };
  chain("ipv6_hop_by_hop_of_7_bytes", packet::kExtensionHopByHop, cut(extension(packet::kProtocolUdp), 7));
  chain("ipv6_hop_by_hop_missing", packet::kExtensionHopByHop, {});
  chain("ipv6_hop_by_hop_past_the_datagram", packet::kExtensionHopByHop,
        set8(extension(packet::kProtocolUdp), 1, 2) + udp);
  chain("ipv6_hop_by_hop_twice", packet::kExtensionHopByHop,
        extension(packet::kExtensionHopByHop) + extension(packet::kProtocolUdp) + udp);
  chain("ipv6_hop_by_hop_behind_destination", packet::kExtensionDestination,
        extension(packet::kExtensionHopByHop) + extension(packet::kProtocolUdp) + udp);
  chain("ipv6_destination_missing_behind_hop_by_hop", packet::kExtensionHopByHop,
        extension(packet::kExtensionDestination));
  chain("ipv6_option_past_its_header", packet::kExtensionDestination,
        packet::FrameBytes{17, 0, 5, 5, 0, 0, 0, 0} + udp);
  chain("ipv6_padding_past_its_header", packet::kExtensionHopByHop,
        packet::FrameBytes{17, 0, 1, 255, 0, 0, 0, 0} + udp);
  chain("ipv6_option_without_length", packet::kExtensionDestination, packet::FrameBytes{17, 0, 1, 3, 0, 0, 0, 5} + udp);
  chain("ipv6_second_option_past_its_header", packet::kExtensionDestination,
        packet::FrameBytes{17, 0, 1, 0, 5, 3, 0, 0} + udp);
  chain("ipv6_routing_of_4_bytes", packet::kExtensionRouting, {17, 0, 0, 0});
  chain("ipv6_routing_past_the_datagram", packet::kExtensionRouting, {17, 2, 0, 1, 0, 0, 0, 0});
  chain("ipv6_fragment_header_of_7_bytes", packet::kExtensionFragment, {17, 0, 0, 0, 0, 0, 0});
  chain("ipv6_authentication_past_the_datagram", packet::kExtensionAuthentication, {17, 4, 0, 0, 0, 0, 0, 1});
  chain("ipv6_mobility_past_the_datagram", packet::kExtensionMobility, {59, 1, 0, 0, 0, 0, 0, 0});
  packet::FrameBytes many;
  for (std::uint32_t i = 0; i < packet::kMaxIpv6Extensions; ++i) many = many + extension(packet::kExtensionDestination);
  chain("ipv6_endless_chain", packet::kExtensionDestination, many + extension(packet::kProtocolUdp) + udp);

  const auto fragment = [&](const char* name, int field, std::size_t length) {
    const packet::FrameBytes head{17, 0, static_cast<std::uint8_t>(field >> 8), static_cast<std::uint8_t>(field), 0, 0,
                                  0,  1};
    add(name, packet::ipv6_frame(packet::kExtensionFragment, head + packet::counting(length)), Verdict::ip_fragment);
  };
  fragment("ipv6_fragment_past_byte_65535", 0xfff8, 24);
  fragment("ipv6_first_fragment_of_odd_length", 1, 23);
  fragment("ipv6_middle_fragment_of_12_bytes", 16 | 1, 12);
}

void add_icmp(Frames& out) {
  const auto add = [&](const char* name, packet::FrameBytes bytes, Verdict verdict) {
    out.push_back({name, std::move(bytes), verdict});
  };
  add("icmp_missing", packet::ipv4_frame(packet::kProtocolIcmp, {}), Verdict::icmp_truncated);
  add("icmp_of_7_bytes", packet::ipv4_frame(packet::kProtocolIcmp, packet::counting(7)), Verdict::icmp_truncated);
  add("icmpv6_missing", packet::ipv6_frame(packet::kProtocolIcmpv6, {}), Verdict::icmp_truncated);
  add("icmpv6_of_7_bytes", packet::ipv6_frame(packet::kProtocolIcmpv6, packet::counting(7)), Verdict::icmp_truncated);
  add("icmpv6_missing_behind_extension",
      packet::ipv6_frame(packet::kExtensionDestination, extension(packet::kProtocolIcmpv6)), Verdict::icmp_truncated);
  add("neighbour_solicitation_of_8_bytes",
      packet::ipv6_frame(packet::kProtocolIcmpv6, packet::icmp_message(packet::kNeighbourSolicitation, {}), 255),
      Verdict::icmp_truncated);
  add("neighbour_advertisement_of_23_bytes",
      packet::ipv6_frame(packet::kProtocolIcmpv6,
                         packet::icmp_message(packet::kNeighbourAdvertisement, packet::counting(15)), 255),
      Verdict::icmp_truncated);

  const packet::FrameBytes option{packet::kOptionSourceLinkLayer, 1, 2, 0, 0, 0, 0, 1};
  const auto neighbour = [&](const char* name, packet::FrameBytes bytes) {
    add(name, std::move(bytes), Verdict::neighbour_malformed);
  };
  neighbour("neighbour_solicitation_code_1", set8(solicitation(option), kV6L4 + 1, 1));
  neighbour("neighbour_option_length_0", solicitation(set8(option, 1, 0)));
  neighbour("neighbour_option_past_the_message", solicitation(set8(option, 1, 2)));
  neighbour("neighbour_option_of_4_bytes", solicitation(cut(option, 4)));
  neighbour("neighbour_second_option_length_0", solicitation(option + set8(option, 1, 0)));

  const auto checksum = [&](const char* name, packet::FrameBytes bytes) {
    add(name, std::move(bytes), Verdict::icmp_checksum);
  };
  checksum("icmp_payload_changed", flip(icmp4(), kL4 + 20));
  checksum("icmp_last_odd_byte_changed", flip_last(icmp4(31)));
  checksum("icmp_checksum_0", set16(icmp4(), kL4 + packet::IcmpView::kChecksum, 0));
  checksum("icmp_identifier_changed", flip(icmp4(), kL4 + packet::IcmpView::kIdentifier));
  checksum("icmp_type_changed", set8(icmp4(), kL4, packet::kIcmpEchoReply));
  checksum("icmpv6_payload_changed", flip(icmp6(), kV6L4 + 20));
  checksum("icmpv6_source_changed", flip(icmp6(), kL3 + packet::Ipv6View::kSource + 15));
  packet::FrameBytes plain = packet::ipv6_frame(packet::kProtocolIcmpv6,
                                                packet::icmp_message(packet::kIcmpv6EchoRequest, packet::counting(9)));
  packet::store_be16(plain.data() + kV6L4 + 2, warpline::packet::checksum(plain.data() + kV6L4, 17));
  checksum("icmpv6_checksum_without_pseudo_header", plain);
  checksum("neighbour_target_changed", flip(solicitation(option), kV6L4 + packet::NeighbourView::kTarget));
}

void add_udp(Frames& out) {
  const auto add = [&](std::string name, packet::FrameBytes bytes, Verdict verdict) {
    out.push_back({std::move(name), std::move(bytes), verdict});
  };
  for (const std::size_t have : {0, 7}) {
    const std::string length = std::to_string(have);
    add("udp_header_of_" + length + "_bytes", packet::ipv4_frame(packet::kProtocolUdp, packet::counting(have)),
        Verdict::udp_truncated);
    add("udp_over_ipv6_header_of_" + length + "_bytes",
        packet::ipv6_frame(packet::kProtocolUdp, packet::counting(have)), Verdict::udp_truncated);
  }
  add("udp_missing_behind_extension",
      packet::ipv6_frame(packet::kExtensionDestination, extension(packet::kProtocolUdp)), Verdict::udp_truncated);
  add("udp_missing_behind_ipv4_options", packet::ipv4_frame(packet::kProtocolUdp, {}, {}, {148, 4, 0, 0}),
      Verdict::udp_truncated);
  for (const int length : {0, 7, 27, 65535}) {
    const std::string text = std::to_string(length);
    add("udp_length_" + text + "_of_26", set16(udp4(), kL4 + packet::UdpView::kLength, length), Verdict::udp_length);
    add("udp_over_ipv6_length_" + text + "_of_26", set16(udp6(), kV6L4 + packet::UdpView::kLength, length),
        Verdict::udp_length);
  }
  const auto checksum = [&](const char* name, packet::FrameBytes bytes) {
    add(name, std::move(bytes), Verdict::udp_checksum);
  };
  checksum("udp_payload_changed", flip(udp4(), kL4 + 12));
  checksum("udp_last_odd_byte_changed", flip_last(udp4(17)));
  checksum("udp_port_changed", flip(udp4(), kL4 + 1));
  checksum("udp_checksum_one_too_high", set16(udp4(), kL4 + 6, packet::load_be16(udp4().data() + kL4 + 6) + 1));
  packet::FrameBytes moved = flip(udp4(), kL3 + packet::Ipv4View::kSource + 3);
  packet::store_be16(moved.data() + kL3 + packet::Ipv4View::kChecksum, 0);
  packet::store_be16(moved.data() + kL3 + packet::Ipv4View::kChecksum,
                     warpline::packet::checksum(moved.data() + kL3, 20));
  checksum("udp_made_for_another_source", moved);
  checksum("tagged_udp_payload_changed", flip_last(packet::tagged(udp4(), packet::kEtherTypeVlan, 5)));
  checksum("udp_over_ipv6_without_checksum", set16(udp6(), kV6L4 + 6, 0));
  checksum("udp_over_ipv6_payload_changed", flip_last(udp6()));
  checksum("udp_over_ipv6_destination_changed", flip(udp6(), kL3 + packet::Ipv6View::kDestination + 15));
  const packet::FrameBytes behind = packet::ipv6_frame(
      packet::kExtensionDestination, extension(packet::kProtocolUdp) + packet::udp_datagram(packet::counting(9)));
  checksum("udp_behind_extension_payload_changed", flip_last(packet::with_checksums(behind)));
}

void add_tcp(Frames& out) {
  const auto add = [&](std::string name, packet::FrameBytes bytes, Verdict verdict) {
    out.push_back({std::move(name), std::move(bytes), verdict});
  };
  for (const std::size_t have : {0, 19}) {
    const std::string length = std::to_string(have);
    add("tcp_header_of_" + length + "_bytes", packet::ipv4_frame(packet::kProtocolTcp, packet::counting(have)),
        Verdict::tcp_truncated);
    add("tcp_over_ipv6_header_of_" + length + "_bytes",
        packet::ipv6_frame(packet::kProtocolTcp, packet::counting(have)), Verdict::tcp_truncated);
  }
  for (const int words : {0, 4, 8, 15}) {
    const std::string text = std::to_string(words);
    add("tcp_data_offset_" + text, set8(tcp4(), kL4 + packet::TcpView::kDataOffset, words << 4),
        Verdict::tcp_data_offset);
    add("tcp_over_ipv6_data_offset_" + text, set8(tcp6(), kV6L4 + packet::TcpView::kDataOffset, words << 4),
        Verdict::tcp_data_offset);
  }
  const auto option = [&](const char* name, const packet::FrameBytes& options) {
    add(name,
        packet::with_checksums(
            packet::ipv4_frame(packet::kProtocolTcp, packet::tcp_segment(packet::counting(11), options))),
        Verdict::tcp_options);
  };
  option("tcp_option_length_0", {30, 0, 0, 0});
  option("tcp_option_length_1", {30, 1, 0, 0});
  option("tcp_option_past_the_header", {30, 5, 0, 0});
  option("tcp_option_without_length", {1, 1, 1, 30});
  option("tcp_mss_length_3", {2, 3, 5, 0});
  option("tcp_mss_length_5", {2, 5, 5, 0xb4, 0, 0, 0, 0});
  option("tcp_mss_past_the_header", {1, 2, 4, 5});
  option("tcp_window_scale_length_2", {3, 2, 1, 1});
  option("tcp_sack_permitted_length_3", {4, 3, 1, 1});
  option("tcp_sack_without_a_block", {5, 2, 1, 1});
  option("tcp_sack_of_half_a_block", {5, 6, 0, 0, 0, 1, 1, 1});
  option("tcp_timestamps_length_8", {8, 8, 0, 0, 0, 0, 0, 0});
  option("tcp_timestamps_past_the_header", {1, 1, 1, 1, 8, 10, 0, 0});

  const auto checksum = [&](const char* name, packet::FrameBytes bytes) {
    add(name, std::move(bytes), Verdict::tcp_checksum);
  };
  checksum("tcp_last_odd_byte_changed", flip_last(tcp4()));
  checksum("tcp_checksum_0", set16(tcp4(), kL4 + packet::TcpView::kChecksum, 0));
  checksum("tcp_sequence_changed", flip(tcp4(), kL4 + packet::TcpView::kSequence + 3));
  checksum("tcp_flags_changed", flip(tcp4(), kL4 + packet::TcpView::kFlags));
  checksum("tcp_option_changed", flip(tcp4({2, 4, 5, 0xb4}), kL4 + 23));
  checksum("tcp_over_ipv6_payload_changed", flip_last(tcp6()));
  checksum("doubly_tagged_tcp_payload_changed",
           flip_last(packet::tagged(packet::tagged(tcp4(), packet::kEtherTypeVlan, 5), packet::kEtherTypeService, 6)));
}

}  // namespace

std::vector<MalformedFrame> malformed_frames() {
  Frames frames;
  add_ethernet(frames);
  add_vlan(frames);
  add_arp(frames);
  add_ipv4(frames);
  add_ipv6(frames);
  add_icmp(frames);
  add_udp(frames);
  add_tcp(frames);
  return frames;
}

}  // namespace warpline
