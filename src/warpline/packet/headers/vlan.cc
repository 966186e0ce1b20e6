// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/vlan.h"

#include <fmt/format.h>

namespace warpline::packet {

std::string to_string(const VlanTag& tag) {
  return fmt::format("vlan {} priority {}{} type {:#06x}", tag.id, tag.priority, tag.drop_eligible ? " dei" : "",
                     tag.ether_type);
}

}  // namespace warpline::packet
