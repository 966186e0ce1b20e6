// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/icmp.h"

#include <fmt/format.h>

#include "warpline/packet/headers/icmpv6.h"

namespace warpline::packet {

std::string to_string(const IcmpHeader& header) {
  const bool request = header.type == kIcmpEchoRequest || header.type == kIcmpv6EchoRequest;
  const bool reply = header.type == kIcmpEchoReply || header.type == kIcmpv6EchoReply;
  if (header.code == 0 && (request || reply)) {
    return fmt::format("icmp echo {} id {} seq {}", request ? "request" : "reply", header.identifier, header.sequence);
  }
  return fmt::format("icmp type {} code {}", header.type, header.code);
}

}  // namespace warpline::packet
