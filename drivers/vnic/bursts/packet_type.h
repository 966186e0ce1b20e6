// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <rte_mbuf_ptype.h>

#include "vnic/rings/descriptor.h"

namespace warpline::vnic {

/// mbuf packet type for each value of a received word's kind (rx_kind).
inline constexpr std::array<std::uint32_t, kRxKindMask + 1> kPacketTypes = [] {
  constexpr std::uint32_t kL2[] = {RTE_PTYPE_L2_ETHER, RTE_PTYPE_L2_ETHER_VLAN, RTE_PTYPE_L2_ETHER_QINQ,
                                   RTE_PTYPE_L2_ETHER_QINQ};
  constexpr std::uint32_t kL3[] = {0, 0, RTE_PTYPE_L3_IPV4_EXT_UNKNOWN, RTE_PTYPE_L3_IPV6_EXT_UNKNOWN};
  constexpr std::uint32_t kL4[] = {0, RTE_PTYPE_L4_ICMP, RTE_PTYPE_L4_UDP, RTE_PTYPE_L4_TCP, RTE_PTYPE_L4_FRAG, 0, 0,
                                   0};
  std::array<std::uint32_t, kRxKindMask + 1> table{};
  for (std::size_t kind = 0; kind < table.size(); ++kind) {
    const bool arp = (kind & 3) == static_cast<std::size_t>(RxL3::arp);
    table[kind] =
        (arp && kind >> 5 == 0 ? RTE_PTYPE_L2_ETHER_ARP : kL2[kind >> 5]) | kL3[kind & 3] | kL4[kind >> 2 & 7];
  }
  return table;
}();

}  // namespace warpline::vnic
