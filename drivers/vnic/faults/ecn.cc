// SPDX-License-Identifier: Apache-2.0
#include "vnic/faults/ecn.h"

#include "warpline/packet/byte_order.h"
#include "warpline/packet/checksum.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/headers/ipv6.h"
#include "warpline/packet/headers/vlan.h"

namespace warpline::vnic {
namespace {

constexpr std::uint8_t kCongestionExperienced = 3;

/// ECT(0), ECT(1): neither 0, not capable, nor marked already.
bool is_capable(unsigned field) { return field == 1 || field == 2; }

}  // namespace

bool mark_congestion(std::uint8_t* frame, std::uint32_t length) {
  std::uint32_t offset = packet::EthernetView::kHeaderLength;
  if (length < offset) return false;
  std::uint16_t type = packet::EthernetView(frame).ether_type();
  for (unsigned tags = 0; packet::is_vlan(type) && tags < packet::kMaxVlanTags; ++tags) {
    if (length < offset + packet::VlanView::kHeaderLength) return false;
    type = packet::VlanView(frame + offset).ether_type();
    offset += packet::VlanView::kHeaderLength;
  }
  std::uint8_t* header = frame + offset;
  if (type == packet::kEtherTypeIpv4 && length >= offset + packet::Ipv4View::kHeaderLength && header[0] >> 4 == 4) {
    if (!is_capable(header[1] & 3U)) return false;
    const std::uint16_t before = packet::load_be16(header);
    header[1] |= kCongestionExperienced;
    std::uint8_t* checksum = header + packet::Ipv4View::kChecksum;
    packet::store_be16(checksum,
                       packet::update_checksum(packet::load_be16(checksum), before, packet::load_be16(header)));
    return true;
  }
  if (type == packet::kEtherTypeIpv6 && length >= offset + packet::Ipv6View::kHeaderLength && header[0] >> 4 == 6) {
    // The traffic class' low two bits lie in the high half of the second byte.
    if (!is_capable(header[1] >> 4 & 3U)) return false;
    header[1] |= kCongestionExperienced << 4;
    return true;
  }
  return false;
}

}  // namespace warpline::vnic
