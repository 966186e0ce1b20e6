// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/udp.h"

#include <fmt/format.h>

namespace warpline::packet {

std::string to_string(const UdpHeader& header) {
  return fmt::format("udp {} > {} length {}", header.source_port, header.destination_port, header.length);
}

}  // namespace warpline::packet
