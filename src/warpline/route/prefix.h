// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "warpline/base/address.h"
#include "warpline/packet/headers/ipv4.h"

namespace warpline::route {

/// `address` with all bits behind the first `length` cleared.
template <typename Address>
[[nodiscard]] constexpr Address masked(Address address, unsigned length) {
  for (unsigned i = 0; i < address.bytes.size(); ++i) {
    const unsigned left = length > 8 * i ? length - 8 * i : 0;
    if (left < 8) address.bytes[i] &= static_cast<std::uint8_t>(0xff00 >> left);
  }
  return address;
}

template <typename Address>
[[nodiscard]] constexpr bool covers(const Address& prefix, unsigned length, const Address& address) {
  return masked(address, length) == masked(prefix, length);
}

/// The last address of a link: for all of its hosts.
[[nodiscard]] constexpr Ipv4Address broadcast(Ipv4Address link, unsigned length) {
  const Ipv4Address host_bits = masked(Ipv4Address{{0xff, 0xff, 0xff, 0xff}}, length);
  for (unsigned i = 0; i < 4; ++i) link.bytes[i] |= static_cast<std::uint8_t>(~host_bits.bytes[i]);
  return link;
}

/// Destinations that no router passes on (RFC 1812, 5.3.7; RFC 4291, 2.5.6 and 2.7): this network, loopback, groups,
/// reserved; of IPv6 also link-local ones and mapped IPv4. Each a prefix and its length.
template <typename Address>
[[nodiscard]] constexpr auto martians() {
  if constexpr (sizeof(Address) == 4) {
    return std::array<std::pair<Ipv4Address, std::uint8_t>, 4>{
        {{{{0, 0, 0, 0}}, 8}, {{{127, 0, 0, 0}}, 8}, {{{224, 0, 0, 0}}, 4}, {{{240, 0, 0, 0}}, 4}}};
  } else {
    return std::array<std::pair<Ipv6Address, std::uint8_t>, 5>{
        {{{{}}, 128},
         {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, 128},
         {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}}, 96},
         {{{0xfe, 0x80}}, 10},
         {{{0xff}}, 8}}};
  }
}

/// Whether all of a prefix is martian.
template <typename Address>
[[nodiscard]] constexpr bool in_martian(const Address& prefix, unsigned length) {
  for (const auto& [martian, size] : martians<Address>()) {
    if (length >= size && covers(martian, size, prefix)) return true;
  }
  return false;
}

[[nodiscard]] constexpr bool is_link_local(const Ipv4Address&) { return false; }
[[nodiscard]] constexpr bool is_link_local(const Ipv6Address& address) {
  return covers(Ipv6Address{{0xfe, 0x80}}, 10, address);
}

/// An address that one host may have and that packets are routed to.
template <typename Address>
[[nodiscard]] constexpr bool is_host(const Address& address) {
  return !in_martian(address, sizeof(Address) * 8);
}

/// Whether a host with that address would be on the link of the port that has `own`, as its neighbour.
[[nodiscard]] inline bool is_neighbour(const InterfaceAddress& own, const IpAddress& address) {
  if (own.address.index() != address.index() || own.address == address) return false;
  const unsigned length = own.prefix_length;
  if (const auto* v6 = std::get_if<Ipv6Address>(&address)) {
    return is_host(*v6) && covers(std::get<Ipv6Address>(own.address), length, *v6);
  }
  const auto& v4 = std::get<Ipv4Address>(address);
  const auto& link = std::get<Ipv4Address>(own.address);
  if (!is_host(v4) || !covers(link, length, v4)) return false;
  return length >= 31 || (v4 != masked(v4, length) && v4 != broadcast(v4, length));
}

/// Protocols whose first four bytes are the ports.
[[nodiscard]] constexpr bool has_ports(std::uint8_t protocol) {
  return protocol == packet::kProtocolTcp || protocol == packet::kProtocolUdp;
}

}  // namespace warpline::route
