// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/route/route_set.h"

namespace warpline::route {

/// The routes of `text`, a file called `name` in messages, and those that follow from the ports: their links, their
/// addresses, and the martians. Nothing is returned unless all of it makes sense; a usage error says file, line and
/// reason.
///
/// One route a line, '#' begins a comment:
///
///     10.1.0.0/16 via 10.0.0.2            # the port is the one on whose link the gateway is
///     fd00:2::/64 via fe80::1 port 1      # needed where the gateway is link-local
///     10.2.0.0/16 via 192.0.2.1 port 0 onlink   # a gateway that no prefix of the port covers
///     192.168.7.0/24 port 0               # on the link of that port
///     flow 10.0.0.1 10.1.0.9 udp 4000 53 via 10.0.0.2
///
/// A flow's protocol is tcp, udp or a number; only tcp and udp have ports. Flows are for exact match: without
/// `flows_allowed` one is an error. O(n log n); a million routes take about a second.
[[nodiscard]] Result<RouteSet> parse_routes(std::string_view text, const std::string& name,
                                            const std::vector<RouterPort>& ports, bool flows_allowed);

/// The same from a file; with an empty path only what follows from the ports.
[[nodiscard]] Result<RouteSet> read_routes(const std::string& path, const std::vector<RouterPort>& ports,
                                           bool flows_allowed);

}  // namespace warpline::route
