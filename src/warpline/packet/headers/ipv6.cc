// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/ipv6.h"

#include <fmt/format.h>

namespace warpline::packet {

std::string to_string(const Ipv6Header& header) {
  std::string text = fmt::format("{} > {} next {} length {} hops {}", to_string(IpAddress{header.source}),
                                 to_string(IpAddress{header.destination}), header.next_header, header.payload_length,
                                 header.hop_limit);
  if (header.traffic_class != 0) text += fmt::format(" class {:#04x}", header.traffic_class);
  if (header.flow_label != 0) text += fmt::format(" flow {:#x}", header.flow_label);
  return text;
}

}  // namespace warpline::packet
