// SPDX-License-Identifier: Apache-2.0
#include "frames/malformed_frames.h"

#include <utility>

#include "warpline/packet/frame_testing.h"

namespace warpline {
namespace {

using Frames = std::vector<MalformedFrame>;

constexpr std::size_t kL3 = 14;        // of an untagged frame
constexpr std::size_t kL4 = kL3 + 20;  // over IPv4 without options
constexpr std::size_t kV6L4 = kL3 + 40;

FrameBytes cut(FrameBytes frame, std::size_t length) {
  frame.resize(length);
  return frame;
}

FrameBytes set8(FrameBytes frame, std::size_t at, int value) {
  frame.at(at) = static_cast<std::uint8_t>(value);
  return frame;
}

FrameBytes set16(FrameBytes frame, std::size_t at, int value) {
  return set8(set8(std::move(frame), at, value >> 8), at + 1, value & 0xff);
}

FrameBytes flip(FrameBytes frame, std::size_t at) {
  frame.at(at) ^= 0x10;
  return frame;
}

FrameBytes flip_last(const FrameBytes& frame) { return flip(frame, frame.size() - 1); }

FrameBytes udp4(std::size_t payload = 18) {
  return with_checksums(ipv4_frame(kProtocolUdp, udp_datagram(counting(payload))));
}
FrameBytes udp6(std::size_t payload = 18) {
  return with_checksums(ipv6_frame(kProtocolUdp, udp_datagram(counting(payload))));
}
FrameBytes tcp4(const FrameBytes& options = {}) {
  return with_checksums(ipv4_frame(kProtocolTcp, tcp_segment(counting(11), options)));
}
FrameBytes tcp6() { return with_checksums(ipv6_frame(kProtocolTcp, tcp_segment(counting(11)))); }
FrameBytes icmp4(std::size_t payload = 32) {
  return with_checksums(ipv4_frame(kProtocolIcmp, icmp_message(kIcmpEchoRequest, counting(payload))));
}
FrameBytes icmp6(std::size_t payload = 32) {
  return with_checksums(ipv6_frame(kProtocolIcmpv6, icmp_message(kIcmpv6EchoRequest, counting(payload))));
}

FrameBytes solicitation(const FrameBytes& options) {
  FrameBytes message(NeighbourView::kHeaderLength);
  NeighbourMessage fields;
  fields.target = kTestDestinationV6;
  emit(fields, message.data());
  return with_checksums(ipv6_frame(kProtocolIcmpv6, message + options, 255));
}

/// An extension header of eight bytes whose last six are PadN.
FrameBytes extension(std::uint8_t next) { return {next, 0, 1, 4, 0, 0, 0, 0}; }

void add_ethernet(Frames& out) {
  for (const std::size_t length : {1, 6, 12, 13}) {
    out.push_back({"ethernet_of_" + std::to_string(length) + "_bytes", cut(udp4(), length), Verdict::runt});
  }
}

void add_vlan(Frames& out) {
  const FrameBytes one = tagged(udp4(), kEtherTypeVlan, 5);
  for (const std::size_t have : {0, 1, 2, 3}) {
    out.push_back({"vlan_tag_of_" + std::to_string(have) + "_bytes", cut(one, 14 + have), Verdict::vlan_truncated});
  }
  const FrameBytes two = tagged(one, kEtherTypeService, 100);
  const FrameBytes old = tagged(one, kEtherTypeOldQinq, 100);
  out.push_back({"service_tag_missing", cut(two, 14), Verdict::vlan_truncated});
  out.push_back({"customer_tag_missing", cut(two, 18), Verdict::vlan_truncated});
  out.push_back({"customer_tag_of_3_bytes", cut(two, 21), Verdict::vlan_truncated});
  out.push_back({"old_qinq_tag_of_2_bytes", cut(old, 16), Verdict::vlan_truncated});
  out.push_back(
      {"three_customer_tags", tagged(tagged(one, kEtherTypeVlan, 6), kEtherTypeVlan, 7), Verdict::vlan_nested});
  out.push_back({"service_tag_over_two_customer_tags", tagged(tagged(one, kEtherTypeVlan, 6), kEtherTypeService, 7),
                 Verdict::vlan_nested});
  out.push_back(
      {"three_old_qinq_tags", tagged(tagged(old, kEtherTypeOldQinq, 1), kEtherTypeOldQinq, 2), Verdict::vlan_nested});
  out.push_back({"four_tags", tagged(tagged(two, kEtherTypeVlan, 6), kEtherTypeVlan, 7), Verdict::vlan_nested});
  out.push_back({"third_tag_announced_but_missing", cut(tagged(two, kEtherTypeVlan, 6), 22), Verdict::vlan_nested});
}

void add_arp(Frames& out) {
  ArpPacket packet;
  packet.sender_mac = kTestSourceMac;
  packet.sender_ip = kTestSourceV4;
  packet.target_ip = kTestDestinationV4;
  const FrameBytes good = arp_frame(packet);
  for (const std::size_t have : {0, 1, 7, 8, 27}) {
    out.push_back({"arp_of_" + std::to_string(have) + "_bytes", cut(good, kL3 + have), Verdict::arp_truncated});
  }
  out.push_back({"tagged_arp_of_27_bytes", cut(tagged(good, kEtherTypeVlan, 5), 18 + 27), Verdict::arp_truncated});
  const auto bad = [&](const char* name, FrameBytes bytes) {
    out.push_back({name, std::move(bytes), Verdict::arp_malformed});
  };
  bad("arp_hardware_type_0", set16(good, kL3 + ArpView::kHardwareType, 0));
  bad("arp_hardware_type_ieee802", set16(good, kL3 + ArpView::kHardwareType, 6));
  bad("arp_protocol_type_0", set16(good, kL3 + ArpView::kProtocolType, 0));
  bad("arp_protocol_type_ipv6", set16(good, kL3 + ArpView::kProtocolType, kEtherTypeIpv6));
  bad("arp_hardware_length_0", set8(good, kL3 + ArpView::kHardwareLength, 0));
  bad("arp_hardware_length_8", set8(good, kL3 + ArpView::kHardwareLength, 8));
  bad("arp_hardware_length_255", set8(good, kL3 + ArpView::kHardwareLength, 255));
  bad("arp_protocol_length_0", set8(good, kL3 + ArpView::kProtocolLength, 0));
  bad("arp_protocol_length_16", set8(good, kL3 + ArpView::kProtocolLength, 16));
  bad("arp_lengths_exchanged", set16(good, kL3 + ArpView::kHardwareLength, 0x0406));
  bad("arp_short_and_of_wrong_type", cut(set16(good, kL3, 6), kL3 + 8));
}

void add_ipv4(Frames& out) {
  const FrameBytes good = udp4();
  const int datagram = static_cast<int>(good.size() - kL3);
  const auto add = [&](std::string name, FrameBytes bytes, Verdict verdict) {
    out.push_back({std::move(name), std::move(bytes), verdict});
  };
  for (const std::size_t have : {0, 1, 19}) {
    add("ipv4_header_of_" + std::to_string(have) + "_bytes", cut(good, kL3 + have), Verdict::ipv4_truncated);
  }
  const FrameBytes one_tag = tagged(good, kEtherTypeVlan, 5);
  add("tagged_ipv4_header_of_19_bytes", cut(one_tag, 18 + 19), Verdict::ipv4_truncated);
  add("doubly_tagged_ipv4_header_missing", cut(tagged(one_tag, kEtherTypeService, 6), 22), Verdict::ipv4_truncated);
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

  const auto option = [&](const char* name, const FrameBytes& options) {
    add(name, with_checksums(ipv4_frame(kProtocolUdp, udp_datagram(counting(18)), {}, options)), Verdict::ipv4_options);
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

  Ipv4Header last;
  last.fragment_offset = 8189;
  add("ipv4_fragment_past_byte_65535", ipv4_frame(kProtocolUdp, counting(24), last), Verdict::ip_fragment);
  last.fragment_offset = 8191;
  add("ipv4_fragment_ping_of_death", ipv4_frame(kProtocolIcmp, counting(1000), last), Verdict::ip_fragment);
  Ipv4Header middle;
  middle.more_fragments = true;
  add("ipv4_first_fragment_of_odd_length", ipv4_frame(kProtocolUdp, counting(23), middle), Verdict::ip_fragment);
  middle.fragment_offset = 3;
  add("ipv4_middle_fragment_of_12_bytes", ipv4_frame(kProtocolUdp, counting(12), middle), Verdict::ip_fragment);

  const int sum = load_be16(good.data() + kL3 + Ipv4View::kChecksum);
  const auto checksum = [&](const char* name, FrameBytes bytes) {
    add(name, std::move(bytes), Verdict::ipv4_checksum);
  };
  checksum("ipv4_checksum_one_too_high", set16(good, kL3 + Ipv4View::kChecksum, sum + 1));
  checksum("ipv4_checksum_0", set16(good, kL3 + Ipv4View::kChecksum, 0));
  checksum("ipv4_checksum_inverted", set16(good, kL3 + Ipv4View::kChecksum, ~sum));
  checksum("ipv4_checksum_byte_swapped", set16(good, kL3 + Ipv4View::kChecksum, (sum & 0xff) << 8 | sum >> 8));
  checksum("ipv4_time_to_live_changed", flip(good, kL3 + Ipv4View::kTimeToLive));
  checksum("ipv4_source_changed", flip(good, kL3 + Ipv4View::kSource + 3));
  checksum("tagged_ipv4_identification_changed", flip(one_tag, 18 + Ipv4View::kIdentification));
  const FrameBytes alert = with_checksums(ipv4_frame(kProtocolUdp, udp_datagram({}), {}, {148, 4, 0, 0}));
  checksum("ipv4_option_changed", flip(alert, kL3 + 23));
  middle.fragment_offset = 2;
  checksum("ipv4_fragment_destination_changed",
           flip(ipv4_frame(kProtocolUdp, counting(16), middle), kL3 + Ipv4View::kDestination));
}

void add_ipv6(Frames& out) {
  const FrameBytes good = udp6();
  const FrameBytes one_tag = tagged(good, kEtherTypeVlan, 5);
  const FrameBytes udp = udp_datagram(counting(8));
  const int payload = static_cast<int>(good.size() - kV6L4);
  const auto add = [&](std::string name, FrameBytes bytes, Verdict verdict) {
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

  const auto chain = [&](const char* name, std::uint8_t next, const FrameBytes& bytes) {
    add(name, ipv6_frame(next, bytes), Verdict::ipv6_extension);
  };
  chain("ipv6_hop_by_hop_of_7_bytes", kExtensionHopByHop, cut(extension(kProtocolUdp), 7));
  chain("ipv6_hop_by_hop_missing", kExtensionHopByHop, {});
  chain("ipv6_hop_by_hop_past_the_datagram", kExtensionHopByHop, set8(extension(kProtocolUdp), 1, 2) + udp);
  chain("ipv6_hop_by_hop_twice", kExtensionHopByHop, extension(kExtensionHopByHop) + extension(kProtocolUdp) + udp);
  chain("ipv6_hop_by_hop_behind_destination", kExtensionDestination,
        extension(kExtensionHopByHop) + extension(kProtocolUdp) + udp);
  chain("ipv6_destination_missing_behind_hop_by_hop", kExtensionHopByHop, extension(kExtensionDestination));
  chain("ipv6_option_past_its_header", kExtensionDestination, FrameBytes{17, 0, 5, 5, 0, 0, 0, 0} + udp);
  chain("ipv6_padding_past_its_header", kExtensionHopByHop, FrameBytes{17, 0, 1, 255, 0, 0, 0, 0} + udp);
  chain("ipv6_option_without_length", kExtensionDestination, FrameBytes{17, 0, 1, 3, 0, 0, 0, 5} + udp);
  chain("ipv6_second_option_past_its_header", kExtensionDestination, FrameBytes{17, 0, 1, 0, 5, 3, 0, 0} + udp);
  chain("ipv6_routing_of_4_bytes", kExtensionRouting, {17, 0, 0, 0});
  chain("ipv6_routing_past_the_datagram", kExtensionRouting, {17, 2, 0, 1, 0, 0, 0, 0});
  chain("ipv6_fragment_header_of_7_bytes", kExtensionFragment, {17, 0, 0, 0, 0, 0, 0});
  chain("ipv6_authentication_past_the_datagram", kExtensionAuthentication, {17, 4, 0, 0, 0, 0, 0, 1});
  chain("ipv6_mobility_past_the_datagram", kExtensionMobility, {59, 1, 0, 0, 0, 0, 0, 0});
  FrameBytes many;
  for (std::uint32_t i = 0; i < kMaxIpv6Extensions; ++i) many = many + extension(kExtensionDestination);
  chain("ipv6_endless_chain", kExtensionDestination, many + extension(kProtocolUdp) + udp);

  const auto fragment = [&](const char* name, int field, std::size_t length) {
    const FrameBytes head{17, 0, static_cast<std::uint8_t>(field >> 8), static_cast<std::uint8_t>(field), 0, 0, 0, 1};
    add(name, ipv6_frame(kExtensionFragment, head + counting(length)), Verdict::ip_fragment);
  };
  fragment("ipv6_fragment_past_byte_65535", 0xfff8, 24);
  fragment("ipv6_first_fragment_of_odd_length", 1, 23);
  fragment("ipv6_middle_fragment_of_12_bytes", 16 | 1, 12);
}

void add_icmp(Frames& out) {
  const auto add = [&](const char* name, FrameBytes bytes, Verdict verdict) {
    out.push_back({name, std::move(bytes), verdict});
  };
  add("icmp_missing", ipv4_frame(kProtocolIcmp, {}), Verdict::icmp_truncated);
  add("icmp_of_7_bytes", ipv4_frame(kProtocolIcmp, counting(7)), Verdict::icmp_truncated);
  add("icmpv6_missing", ipv6_frame(kProtocolIcmpv6, {}), Verdict::icmp_truncated);
  add("icmpv6_of_7_bytes", ipv6_frame(kProtocolIcmpv6, counting(7)), Verdict::icmp_truncated);
  add("icmpv6_missing_behind_extension", ipv6_frame(kExtensionDestination, extension(kProtocolIcmpv6)),
      Verdict::icmp_truncated);
  add("neighbour_solicitation_of_8_bytes", ipv6_frame(kProtocolIcmpv6, icmp_message(kNeighbourSolicitation, {}), 255),
      Verdict::icmp_truncated);
  add("neighbour_advertisement_of_23_bytes",
      ipv6_frame(kProtocolIcmpv6, icmp_message(kNeighbourAdvertisement, counting(15)), 255), Verdict::icmp_truncated);

  const FrameBytes option{kOptionSourceLinkLayer, 1, 2, 0, 0, 0, 0, 1};
  const auto neighbour = [&](const char* name, FrameBytes bytes) {
    add(name, std::move(bytes), Verdict::neighbour_malformed);
  };
  neighbour("neighbour_solicitation_code_1", set8(solicitation(option), kV6L4 + 1, 1));
  neighbour("neighbour_option_length_0", solicitation(set8(option, 1, 0)));
  neighbour("neighbour_option_past_the_message", solicitation(set8(option, 1, 2)));
  neighbour("neighbour_option_of_4_bytes", solicitation(cut(option, 4)));
  neighbour("neighbour_second_option_length_0", solicitation(option + set8(option, 1, 0)));

  const auto checksum = [&](const char* name, FrameBytes bytes) {
    add(name, std::move(bytes), Verdict::icmp_checksum);
  };
  checksum("icmp_payload_changed", flip(icmp4(), kL4 + 20));
  checksum("icmp_last_odd_byte_changed", flip_last(icmp4(31)));
  checksum("icmp_checksum_0", set16(icmp4(), kL4 + IcmpView::kChecksum, 0));
  checksum("icmp_identifier_changed", flip(icmp4(), kL4 + IcmpView::kIdentifier));
  checksum("icmp_type_changed", set8(icmp4(), kL4, kIcmpEchoReply));
  checksum("icmpv6_payload_changed", flip(icmp6(), kV6L4 + 20));
  checksum("icmpv6_source_changed", flip(icmp6(), kL3 + Ipv6View::kSource + 15));
  FrameBytes plain = ipv6_frame(kProtocolIcmpv6, icmp_message(kIcmpv6EchoRequest, counting(9)));
  store_be16(plain.data() + kV6L4 + 2, warpline::checksum(plain.data() + kV6L4, 17));
  checksum("icmpv6_checksum_without_pseudo_header", plain);
  checksum("neighbour_target_changed", flip(solicitation(option), kV6L4 + NeighbourView::kTarget));
}

void add_udp(Frames& out) {
  const auto add = [&](std::string name, FrameBytes bytes, Verdict verdict) {
    out.push_back({std::move(name), std::move(bytes), verdict});
  };
  for (const std::size_t have : {0, 7}) {
    const std::string length = std::to_string(have);
    add("udp_header_of_" + length + "_bytes", ipv4_frame(kProtocolUdp, counting(have)), Verdict::udp_truncated);
    add("udp_over_ipv6_header_of_" + length + "_bytes", ipv6_frame(kProtocolUdp, counting(have)),
        Verdict::udp_truncated);
  }
  add("udp_missing_behind_extension", ipv6_frame(kExtensionDestination, extension(kProtocolUdp)),
      Verdict::udp_truncated);
  add("udp_missing_behind_ipv4_options", ipv4_frame(kProtocolUdp, {}, {}, {148, 4, 0, 0}), Verdict::udp_truncated);
  for (const int length : {0, 7, 27, 65535}) {
    const std::string text = std::to_string(length);
    add("udp_length_" + text + "_of_26", set16(udp4(), kL4 + UdpView::kLength, length), Verdict::udp_length);
    add("udp_over_ipv6_length_" + text + "_of_26", set16(udp6(), kV6L4 + UdpView::kLength, length),
        Verdict::udp_length);
  }
  const auto checksum = [&](const char* name, FrameBytes bytes) { add(name, std::move(bytes), Verdict::udp_checksum); };
  checksum("udp_payload_changed", flip(udp4(), kL4 + 12));
  checksum("udp_last_odd_byte_changed", flip_last(udp4(17)));
  checksum("udp_port_changed", flip(udp4(), kL4 + 1));
  checksum("udp_checksum_one_too_high", set16(udp4(), kL4 + 6, load_be16(udp4().data() + kL4 + 6) + 1));
  FrameBytes moved = flip(udp4(), kL3 + Ipv4View::kSource + 3);
  store_be16(moved.data() + kL3 + Ipv4View::kChecksum, 0);
  store_be16(moved.data() + kL3 + Ipv4View::kChecksum, warpline::checksum(moved.data() + kL3, 20));
  checksum("udp_made_for_another_source", moved);
  checksum("tagged_udp_payload_changed", flip_last(tagged(udp4(), kEtherTypeVlan, 5)));
  checksum("udp_over_ipv6_without_checksum", set16(udp6(), kV6L4 + 6, 0));
  checksum("udp_over_ipv6_payload_changed", flip_last(udp6()));
  checksum("udp_over_ipv6_destination_changed", flip(udp6(), kL3 + Ipv6View::kDestination + 15));
  const FrameBytes behind = ipv6_frame(kExtensionDestination, extension(kProtocolUdp) + udp_datagram(counting(9)));
  checksum("udp_behind_extension_payload_changed", flip_last(with_checksums(behind)));
}

void add_tcp(Frames& out) {
  const auto add = [&](std::string name, FrameBytes bytes, Verdict verdict) {
    out.push_back({std::move(name), std::move(bytes), verdict});
  };
  for (const std::size_t have : {0, 19}) {
    const std::string length = std::to_string(have);
    add("tcp_header_of_" + length + "_bytes", ipv4_frame(kProtocolTcp, counting(have)), Verdict::tcp_truncated);
    add("tcp_over_ipv6_header_of_" + length + "_bytes", ipv6_frame(kProtocolTcp, counting(have)),
        Verdict::tcp_truncated);
  }
  for (const int words : {0, 4, 8, 15}) {
    const std::string text = std::to_string(words);
    add("tcp_data_offset_" + text, set8(tcp4(), kL4 + TcpView::kDataOffset, words << 4), Verdict::tcp_data_offset);
    add("tcp_over_ipv6_data_offset_" + text, set8(tcp6(), kV6L4 + TcpView::kDataOffset, words << 4),
        Verdict::tcp_data_offset);
  }
  const auto option = [&](const char* name, const FrameBytes& options) {
    add(name, with_checksums(ipv4_frame(kProtocolTcp, tcp_segment(counting(11), options))), Verdict::tcp_options);
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

  const auto checksum = [&](const char* name, FrameBytes bytes) { add(name, std::move(bytes), Verdict::tcp_checksum); };
  checksum("tcp_last_odd_byte_changed", flip_last(tcp4()));
  checksum("tcp_checksum_0", set16(tcp4(), kL4 + TcpView::kChecksum, 0));
  checksum("tcp_sequence_changed", flip(tcp4(), kL4 + TcpView::kSequence + 3));
  checksum("tcp_flags_changed", flip(tcp4(), kL4 + TcpView::kFlags));
  checksum("tcp_option_changed", flip(tcp4({2, 4, 5, 0xb4}), kL4 + 23));
  checksum("tcp_over_ipv6_payload_changed", flip_last(tcp6()));
  checksum("doubly_tagged_tcp_payload_changed",
           flip_last(tagged(tagged(tcp4(), kEtherTypeVlan, 5), kEtherTypeService, 6)));
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
