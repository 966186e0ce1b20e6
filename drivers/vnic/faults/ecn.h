// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpline::vnic {

/// Marks an ECN-capable IPv4 or IPv6 packet, behind up to two VLAN tags, as having met congestion (RFC 3168, 5): ECT(0)
/// or ECT(1) become CE, and IPv4's checksum follows. False, and nothing changed, for every other frame.
bool mark_congestion(std::uint8_t* frame, std::uint32_t length);

}  // namespace warpline::vnic
