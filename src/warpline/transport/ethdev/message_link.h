// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "warpline/base/address.h"
#include "warpline/base/units.h"
#include "warpline/message/types.h"
#include "warpline/packet/responder.h"
#include "warpline/route/neighbours.h"
#include "warpline/route/route_set.h"

namespace warpline::transport {

/// What the queues of one port know together of its link. Immutable but for the neighbours, which any thread may use.
struct MessageLink {
  /// `sessions`: of all queues together.
  MessageLink(const MacAddress& mac, std::uint16_t mtu, const std::vector<InterfaceAddress>& addresses,
              std::optional<IpAddress> next, std::optional<std::uint16_t> tag, std::uint64_t sessions,
              std::span<packet::AddressWatch> watches = {});

  /// Our address to talk to `peer` from; null if we have none of its family.
  [[nodiscard]] const IpAddress* own_address(const message::PeerAddress& peer) const;
  /// The neighbour that datagrams to `peer` are handed to; nothing if no way leads there.
  [[nodiscard]] std::optional<route::NeighbourKey> next_hop(const message::PeerAddress& peer) const;
  /// `address`: as in an IP header of that version.
  [[nodiscard]] bool is_own(const std::uint8_t* address, bool v4) const;

  route::RouterPort self;
  std::vector<packet::Responder> responders;  ///< one for each address
  std::optional<IpAddress> gateway;
  std::optional<std::uint16_t> vlan;  ///< only frames with this id are ours, and all that leave have it
  /// Has room for the peers of all sessions, and for addresses that forged hellos name: those that do not answer are
  /// replaced. Asked for more often than a router would: a session that is opened waits for the answer, and links lose
  /// frames while they come up.
  route::NeighbourTable neighbours;
};

}  // namespace warpline::transport
