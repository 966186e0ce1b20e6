// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/udp_path.h"

#include <cstring>

#include "warpline/packet/byte_order.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/headers/ipv6.h"
#include "warpline/packet/headers/udp.h"
#include "warpline/packet/headers/vlan.h"
#include "warpline/packet/parse.h"

namespace warpline::transport {

UdpPath::UdpPath(const Ends& ends)
    : v4_(std::holds_alternative<Ipv4Address>(ends.own)), own_port_(ends.own_port), peer_(ends.peer) {
  std::uint8_t* at = bytes_.data();
  packet::emit(packet::EthernetHeader{ends.next_mac, ends.own_mac,
                                      ends.vlan ? packet::kEtherTypeVlan
                                      : v4_     ? packet::kEtherTypeIpv4
                                                : packet::kEtherTypeIpv6},
               at);
  l3_at_ = packet::EthernetView::kHeaderLength;
  if (ends.vlan) {
    packet::store_be16(at + l3_at_, *ends.vlan);
    packet::store_be16(at + l3_at_ + packet::VlanView::kEtherType,
                       v4_ ? packet::kEtherTypeIpv4 : packet::kEtherTypeIpv6);
    l3_at_ = static_cast<std::uint8_t>(l3_at_ + packet::VlanView::kHeaderLength);
  }
  std::uint8_t* const l3 = at + l3_at_;
  if (v4_) {
    packet::Ipv4Header header;
    header.total_length = 0;
    header.dont_fragment = true;  // so that its identification may be 0 (RFC 6864, 4.1)
    header.time_to_live = 64;
    header.protocol = packet::kProtocolUdp;
    header.source = std::get<Ipv4Address>(ends.own);
    std::memcpy(header.destination.bytes.data(), ends.peer.ip.data() + 12, 4);
    packet::emit(header, l3);
    packet::store_be16(l3 + packet::Ipv4View::kChecksum, 0);
    l3_sum_.add(l3, packet::Ipv4View::kHeaderLength);
    pseudo_sum_ = packet::pseudo_header_v4(l3 + packet::Ipv4View::kSource, packet::kProtocolUdp, 0);
  } else {
    packet::Ipv6Header header;
    header.next_header = packet::kProtocolUdp;
    header.source = std::get<Ipv6Address>(ends.own);
    header.destination.bytes = ends.peer.ip;
    packet::emit(header, l3);
    pseudo_sum_ = packet::pseudo_header_v6(l3 + packet::Ipv6View::kSource, packet::kProtocolUdp, 0);
  }
  packet::emit(packet::UdpHeader{ends.own_port, ends.peer.port, 0, 0}, l3 + l3_length());
  length_ = static_cast<std::uint8_t>(l3_at_ + l3_length() + packet::UdpView::kHeaderLength);
}

void UdpPath::write(std::uint8_t* at, std::span<const std::span<const std::uint8_t>> pieces, std::uint8_t ecn,
                    UdpChecksum checksum) const {
  constexpr std::uint32_t kPlain = 14 + 20 + 8;  // of a length known here it is a few moves
  std::memcpy(at, bytes_.data(), kPlain);
  if (length_ != kPlain) std::memcpy(at + kPlain, bytes_.data() + kPlain, length_ - kPlain);
  std::size_t payload = 0;
  for (const auto& piece : pieces) payload += piece.size();
  const auto udp_length = static_cast<std::uint16_t>(payload + packet::UdpView::kHeaderLength);
  std::uint8_t* const l3 = at + l3_at_;
  std::uint8_t* const udp = l3 + l3_length();
  if (v4_) {
    const auto total = static_cast<std::uint16_t>(udp_length + packet::Ipv4View::kHeaderLength);
    packet::store_be16(l3 + packet::Ipv4View::kTotalLength, total);
    l3[packet::Ipv4View::kTypeOfService] = ecn;
    packet::ChecksumSum sum = l3_sum_;
    sum.add16(total);
    sum.add16(ecn);
    packet::store_be16(l3 + packet::Ipv4View::kChecksum, sum.checksum());
  } else {
    packet::store_be16(l3 + packet::Ipv6View::kPayloadLength, udp_length);
    l3[1] = static_cast<std::uint8_t>((l3[1] & 0x0f) | ecn << 4);  // the lower half of the traffic class
  }
  packet::store_be16(udp + packet::UdpView::kLength, udp_length);
  if (checksum == UdpChecksum::none && v4_) return;
  packet::ChecksumSum sum = pseudo_sum_;
  sum.add16(udp_length);
  if (checksum == UdpChecksum::device) {
    packet::store_be16(udp + packet::UdpView::kChecksum, static_cast<std::uint16_t>(~sum.checksum()));
    return;
  }
  // UDP's own header: not from memory, where it was written just now in smaller pieces.
  sum.add16(own_port_);
  sum.add16(peer_.port);
  sum.add16(udp_length);
  for (const auto& piece : pieces) sum.add(piece.data(), static_cast<std::uint32_t>(piece.size()));
  const std::uint16_t value = sum.checksum();
  packet::store_be16(udp + packet::UdpView::kChecksum, value == 0 ? 0xffff : value);  // RFC 768: 0 would mean none
}

}  // namespace warpline::transport
