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

/// The address of `port` that an ICMP error to `to` comes from (RFC 6724, 5, rules 2 and 8): one of the same scope, of
/// these the one that has most leading bits in common with `to`, up to its prefix length. Nothing if it has none: a
/// link-local address is of no use off the link (RFC 4291, 2.5.6; RFC 4443, 2.2).
[[nodiscard]] std::optional<IpAddress> error_source(const RouterPort& port, const IpAddress& to);

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
  bool on_link;  ///< by the port's own prefixes; otherwise it is of use only for a neighbour that is in the table

  /// Whether `table` can learn from it as a neighbour of `port`. A host that only a route puts on the link has a place
  /// in the table once it has been asked for.
  [[nodiscard]] bool is_for(const NeighbourTable& table, std::uint16_t port) const {
    return on_link || table.find(NeighbourKey::of(port, address)) != NeighbourTable::kNobody;
  }
};

/// What an ARP packet, a neighbour solicitation or an advertisement that `port` received says about its sender
/// (RFC 826; RFC 4861, 7.1, 7.2.3, 7.2.5); nothing if it is none of them, is malformed, has a wrong checksum, or tells
/// of an address that no host has, or of the port's own. Headers must lie in the first segment.
[[nodiscard]] std::optional<NeighbourNews> neighbour_news(FrameRef frame, const packet::ParsedFrame& parsed,
                                                          const RouterPort& port);

}  // namespace warpline::route
