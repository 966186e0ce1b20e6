// SPDX-License-Identifier: Apache-2.0
#include "vnic/steering/mac_filter.h"

#include <algorithm>
#include <cstring>

namespace warpline::vnic {
namespace {

std::uint64_t load48(const std::uint8_t* bytes) {
  std::uint32_t low;
  std::uint16_t high;
  std::memcpy(&low, bytes, sizeof(low));
  std::memcpy(&high, bytes + sizeof(low), sizeof(high));
  return low | std::uint64_t{high} << 32;
}

bool holds(const std::vector<rte_ether_addr>& addresses, std::uint64_t wanted) {
  return std::ranges::any_of(addresses, [wanted](const rte_ether_addr& a) { return load48(a.addr_bytes) == wanted; });
}

}  // namespace

bool MacFilter::passes(const std::uint8_t* destination) const {
  if (promiscuous) return true;
  const std::uint64_t wanted = load48(destination);
  if ((destination[0] & RTE_ETHER_GROUP_ADDR) == 0) return holds(unicast, wanted);
  constexpr std::uint64_t kBroadcast = 0xffff'ffff'ffff;
  return all_multicast || wanted == kBroadcast || holds(multicast, wanted);
}

}  // namespace warpline::vnic
