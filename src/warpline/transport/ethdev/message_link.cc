// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/ethdev/message_link.h"

#include <algorithm>
#include <cstring>

#include "warpline/route/prefix.h"

namespace warpline::transport {
namespace {

constexpr route::NeighbourTimes kTimes{
    .retransmit = Nanos{50'000'000}, .requests = 20, .failed = Nanos{500'000'000}, .replaced = Nanos{10'000'000}};

/// An eighth of them in use: of thousands of buckets none is full. At least what a flood of hellos needs meanwhile.
std::uint32_t neighbours_for(std::uint64_t sessions) {
  constexpr std::uint64_t kMin = 4096;
  constexpr std::uint64_t kMax = 1 << 22;
  return static_cast<std::uint32_t>(std::clamp(8 * sessions, kMin, kMax));
}

}  // namespace

MessageLink::MessageLink(const MacAddress& mac, std::uint16_t mtu, const std::vector<InterfaceAddress>& addresses,
                         std::optional<IpAddress> next, std::optional<std::uint16_t> tag, std::uint64_t sessions,
                         std::span<packet::AddressWatch> watches)
    : self{mac, mtu, addresses}, gateway(next), vlan(tag), neighbours(neighbours_for(sessions), kTimes) {
  packet::ResponderSettings answers{.reporter = packet::reporter_of(addresses)};
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    answers.watch = i < watches.size() ? &watches[i] : nullptr;
    responders.emplace_back(mac, addresses[i], answers);
  }
}

const IpAddress* MessageLink::own_address(const message::PeerAddress& peer) const {
  const std::size_t family = message::ip_address(peer).index();
  for (const InterfaceAddress& own : self.addresses) {
    if (own.address.index() == family) return &own.address;
  }
  return nullptr;
}

std::optional<route::NeighbourKey> MessageLink::next_hop(const message::PeerAddress& peer) const {
  const IpAddress address = message::ip_address(peer);
  for (const InterfaceAddress& own : self.addresses) {
    if (route::is_neighbour(own, address)) return route::NeighbourKey::of(0, address);
  }
  if (gateway && gateway->index() == address.index()) return route::NeighbourKey::of(0, *gateway);
  return std::nullopt;
}

bool MessageLink::is_own(const std::uint8_t* address, bool v4) const {
  for (const InterfaceAddress& own : self.addresses) {
    if (const auto* four = std::get_if<Ipv4Address>(&own.address)) {
      if (v4 && std::memcmp(four->bytes.data(), address, 4) == 0) return true;
    } else if (!v4 && std::memcmp(std::get<Ipv6Address>(own.address).bytes.data(), address, 16) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace warpline::transport
