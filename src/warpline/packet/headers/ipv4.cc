// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/ipv4.h"

#include <fmt/format.h>

namespace warpline::packet {

std::string to_string(const Ipv4Header& header) {
  std::string text =
      fmt::format("{} > {} protocol {} length {} ttl {}", to_string(IpAddress{header.source}),
                  to_string(IpAddress{header.destination}), header.protocol, header.total_length, header.time_to_live);
  if (header.type_of_service != 0) text += fmt::format(" tos {:#04x}", header.type_of_service);
  if (header.identification != 0) text += fmt::format(" id {}", header.identification);
  if (header.dont_fragment) text += " DF";
  if (header.more_fragments) text += " MF";
  if (header.fragment_offset != 0) text += fmt::format(" offset {}", header.fragment_offset * 8);
  if (header.options_length != 0) text += fmt::format(" options {}", header.options_length);
  return text;
}

}  // namespace warpline::packet
