// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/ethernet.h"

#include <fmt/format.h>

namespace warpline::packet {

std::string to_string(const EthernetHeader& header) {
  return fmt::format("{} > {} type {:#06x}", to_string(header.source), to_string(header.destination),
                     header.ether_type);
}

}  // namespace warpline::packet
