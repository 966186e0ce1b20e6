// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/icmpv6.h"

#include <fmt/format.h>

namespace warpline::packet {

std::string to_string(const NeighbourMessage& message) {
  const bool asks = message.type == kNeighbourSolicitation;
  std::string text = fmt::format("neighbour {} {}", asks ? "solicitation for" : "advertisement of",
                                 to_string(IpAddress{message.target}));
  if (message.has_link_layer) text += (asks ? " from " : " at ") + to_string(message.link_layer);
  if (!asks && (message.flags & kAdvertisementSolicited) != 0) text += " solicited";
  if (!asks && (message.flags & kAdvertisementOverride) != 0) text += " override";
  return text;
}

}  // namespace warpline::packet
