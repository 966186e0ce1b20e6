// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "warpline/base/frame.h"
#include "warpline/packet/parse.h"
#include "warpline/route/neighbours.h"
#include "warpline/route/route_set.h"

namespace warpline::route {

/// Bytes of the longest request: a neighbour solicitation.
inline constexpr std::uint32_t kNeighbourRequestLength = 86;

/// The port's own address to ask for `target` from: on the target's link if there is one, else the first of that
/// family.
[[nodiscard]] std::optional<IpAddress> asking_address(const RouterPort& port, const IpAddress& target);

/// Writes an ARP request or a neighbour solicitation for `target` from `source`, both of one family, to `frame`, which
/// holds kNeighbourRequestLength bytes; to one station if `to` is given, else to all or to the target's group. Returns
/// its length, without padding.
[[nodiscard]] std::uint32_t write_neighbour_request(std::span<std::uint8_t> frame, const MacAddress& own_mac,
                                                    const IpAddress& source, const IpAddress& target,
                                                    const std::optional<MacAddress>& to);

/// A neighbour, and what a frame said about it.
struct NeighbourNews {
  IpAddress address;
  NeighbourEvidence evidence;
};

/// What an ARP packet, a neighbour solicitation or an advertisement that `port` received says about its sender
/// (RFC 826; RFC 4861, 7.1, 7.2.3, 7.2.5); nothing if it is none of them, is malformed, has a wrong checksum, or tells
/// of an address that is not on the link, or of the port's own. Headers must lie in the first segment.
[[nodiscard]] std::optional<NeighbourNews> neighbour_news(FrameRef frame, const packet::ParsedFrame& parsed,
                                                          const RouterPort& port);

}  // namespace warpline::route
