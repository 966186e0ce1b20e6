// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/tcp.h"

#include <fmt/format.h>

namespace warpline::packet {

std::string to_string(const TcpHeader& header) {
  constexpr char kFlagLetters[] = {'F', 'S', 'R', 'P', 'A', 'U', 'E', 'C'};
  std::string flags;
  for (int bit = 0; bit < 8; ++bit) {
    if ((header.flags >> bit & 1) != 0) flags += kFlagLetters[bit];
  }
  std::string text = fmt::format("tcp {} > {} {} seq {} ack {} window {}", header.source_port, header.destination_port,
                                 flags.empty() ? "-" : flags, header.sequence, header.acknowledgement, header.window);
  if (header.urgent != 0) text += fmt::format(" urgent {}", header.urgent);
  if (header.options_length != 0) text += fmt::format(" options {}", header.options_length);
  return text;
}

}  // namespace warpline::packet
