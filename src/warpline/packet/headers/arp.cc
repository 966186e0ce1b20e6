// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/arp.h"

#include <fmt/format.h>

namespace warpline::packet {

std::string to_string(const ArpPacket& packet) {
  const std::string sender_mac = to_string(packet.sender_mac);
  const std::string sender_ip = to_string(IpAddress{packet.sender_ip});
  const std::string target_ip = to_string(IpAddress{packet.target_ip});
  switch (packet.operation) {
    case kArpRequest:
      return fmt::format("arp who has {}, tell {} at {}", target_ip, sender_ip, sender_mac);
    case kArpReply:
      return fmt::format("arp {} is at {}, to {} at {}", sender_ip, sender_mac, target_ip,
                         to_string(packet.target_mac));
    default:
      return fmt::format("arp operation {} from {} at {} to {} at {}", packet.operation, sender_ip, sender_mac,
                         target_ip, to_string(packet.target_mac));
  }
}

}  // namespace warpline::packet
