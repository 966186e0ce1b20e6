// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/udp_path.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "warpline/base/property_testing.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/verify.h"

namespace warpline::transport {
namespace {

std::uint8_t byte() { return *rc::gen::arbitrary<std::uint8_t>(); }

UdpPath::Ends some_ends() {
  UdpPath::Ends ends;
  for (std::uint8_t& b : ends.own_mac.bytes) b = byte();
  for (std::uint8_t& b : ends.next_mac.bytes) b = byte();
  if (*rc::gen::arbitrary<bool>()) ends.vlan = *rc::gen::arbitrary<std::uint16_t>();
  ends.own_port = *rc::gen::arbitrary<std::uint16_t>();
  ends.peer.port = *rc::gen::arbitrary<std::uint16_t>();
  for (std::uint8_t& b : ends.peer.ip) b = byte();
  if (*rc::gen::arbitrary<bool>()) {
    Ipv6Address own;
    for (std::uint8_t& b : own.bytes) b = byte();
    ends.own = own;
    return ends;
  }
  ends.own = Ipv4Address{{byte(), byte(), byte(), byte()}};
  const std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  std::memcpy(ends.peer.ip.data(), mapped, sizeof(mapped));
  return ends;
}

WARPLINE_PROPERTY(UdpPath, WritesWhatTheParserReadsWithRightChecksums, ()) {
  const UdpPath::Ends ends = some_ends();
  const UdpPath path(ends);
  const auto head = *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>());
  const auto rest = *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>());
  const std::uint8_t ecn = byte() & 3;
  const auto kind = *rc::gen::element(UdpChecksum::software, UdpChecksum::device, UdpChecksum::none);

  std::vector<std::uint8_t> frame(path.length() + head.size() + rest.size(), 0xee);
  std::copy(head.begin(), head.end(), frame.begin() + path.length());
  std::copy(rest.begin(), rest.end(), frame.begin() + path.length() + static_cast<std::ptrdiff_t>(head.size()));
  const std::span<const std::uint8_t> pieces[] = {head, rest};
  path.write(frame.data(), pieces, ecn, kind);

  Segment segment{frame.data(), static_cast<std::uint32_t>(frame.size()), 0, Verdict::forward};
  const FrameRef ref = frame_at(&segment);
  const packet::ParsedFrame parsed = packet::parse(ref);
  RC_ASSERT(parsed.verdict == Verdict::forward);
  RC_ASSERT(parsed.l4 == packet::L4Kind::udp);
  RC_ASSERT(parsed.vlan_tags == (ends.vlan ? 1 : 0));
  if (ends.vlan) RC_ASSERT(parsed.vlan[0] == *ends.vlan);
  RC_ASSERT(parsed.l2_length == path.l2_length());
  RC_ASSERT(parsed.l3_length == path.l3_length());
  RC_ASSERT(parsed.payload_offset == path.length());
  RC_ASSERT(parsed.payload_length == head.size() + rest.size());

  const packet::UdpView udp(frame.data() + parsed.l4_offset);
  RC_ASSERT(udp.source_port() == ends.own_port);
  RC_ASSERT(udp.destination_port() == ends.peer.port);
  if (kind == UdpChecksum::device) {
    // What DPDK asks for: the pseudo header's sum, so that the device's sum over the datagram completes it.
    const std::uint16_t stored = udp.checksum();
    packet::ChecksumSum whole;
    whole.add(frame.data() + parsed.l4_offset, packet::l4_total(parsed));
    const std::uint16_t completed = whole.checksum();
    packet::store_be16(frame.data() + parsed.l4_offset + packet::UdpView::kChecksum,
                       completed == 0 ? 0xffff : completed);
    RC_ASSERT(stored == static_cast<std::uint16_t>(~packet::pseudo_header(ref, parsed).checksum()));
  }
  if (kind == UdpChecksum::none && path.v4()) RC_ASSERT(udp.checksum() == 0);
  RC_ASSERT(packet::verify_checksums(ref, parsed) == Verdict::forward);

  const std::uint8_t* ip = frame.data() + parsed.l3_offset;
  if (path.v4()) {
    packet::Ipv4Header header;
    RC_ASSERT(packet::parse(ip, 20 + packet::l4_total(parsed), header) == Verdict::forward);
    RC_ASSERT(header.type_of_service == ecn);
    RC_ASSERT(header.source == std::get<Ipv4Address>(ends.own));
    RC_ASSERT(std::memcmp(header.destination.bytes.data(), ends.peer.ip.data() + 12, 4) == 0);
  } else {
    packet::Ipv6Header header;
    RC_ASSERT(packet::parse(ip, 40 + packet::l4_total(parsed), header) == Verdict::forward);
    RC_ASSERT(header.traffic_class == ecn);
    RC_ASSERT(header.source == std::get<Ipv6Address>(ends.own));
    RC_ASSERT(header.destination.bytes == ends.peer.ip);
  }
  packet::EthernetHeader ethernet;
  RC_ASSERT(packet::parse(frame.data(), static_cast<std::uint32_t>(frame.size()), ethernet) == Verdict::forward);
  RC_ASSERT(ethernet.source == ends.own_mac);
  RC_ASSERT(ethernet.destination == ends.next_mac);
}

}  // namespace
}  // namespace warpline::transport
