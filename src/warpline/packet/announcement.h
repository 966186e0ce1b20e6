// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "warpline/base/address.h"

namespace warpline::packet {

/// Returns the frames by which a host that begins to use `addresses` says so to its link: of each IPv4 address an ARP
/// announcement (RFC 5227, 2.3); of the IPv6 addresses the reports that their solicited-node groups have been joined
/// (RFC 3810, 6.1; RFC 4862, 5.4.2). Frames are padded to Ethernet's shortest, 60 bytes.
[[nodiscard]] std::vector<std::vector<std::uint8_t>> announcements(const MacAddress& mac,
                                                                   std::span<const InterfaceAddress> addresses);

}  // namespace warpline::packet
