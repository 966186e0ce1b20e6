// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "warpline/base/address.h"
#include "warpline/base/host_device.h"
#include "warpline/packet/byte_order.h"

namespace warpline::stream {

// An address as the two words of ConnectionKey: IPv4's stands as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2).

inline constexpr std::uint64_t kMappedIpv4 = 0xffff'0000'0000;

[[nodiscard]] WARPLINE_HD constexpr bool is_ipv4(const std::uint64_t (&words)[2]) {
  return words[0] == 0 && words[1] >> 32 == kMappedIpv4 >> 32;
}

inline void store_words(const IpAddress& address, std::uint64_t (&words)[2]) {
  if (const auto* v4 = std::get_if<Ipv4Address>(&address)) {
    words[0] = 0;
    words[1] = kMappedIpv4 | packet::load_be32(v4->bytes.data());
    return;
  }
  const auto& bytes = std::get<Ipv6Address>(address).bytes;
  for (std::size_t i = 0; i < 2; ++i) words[i] = packet::load_be64(bytes.data() + 8 * i);
}

[[nodiscard]] inline IpAddress address_of(const std::uint64_t (&words)[2]) {
  if (is_ipv4(words)) {
    Ipv4Address v4;
    packet::store_be32(v4.bytes.data(), static_cast<std::uint32_t>(words[1]));
    return v4;
  }
  Ipv6Address v6;
  for (std::size_t i = 0; i < 2; ++i) packet::store_be64(v6.bytes.data() + 8 * i, words[i]);
  return v6;
}

/// Returns whether the peer's address is one that a host may have: not unspecified, loopback, group, broadcast, or our
/// own (RFC 9293, 3.9.2.3; RFC 1122, 3.2.1.3).
[[nodiscard]] inline bool is_another_host(const std::uint64_t (&remote)[2], const std::uint64_t (&local)[2]) {
  // IPv4 addresses inside IPv6 addresses are for programs (RFC 4291, 2.5.5.2): no frame has them.
  if (is_ipv4(remote) != is_ipv4(local)) return false;
  if (remote[0] == local[0] && remote[1] == local[1]) return false;
  if (is_ipv4(remote)) {
    const auto first = static_cast<std::uint8_t>(remote[1] >> 24);
    return first != 0 && first != 127 && first < 224;
  }
  const bool unspecified_or_loopback = remote[0] == 0 && remote[1] <= 1;
  return !unspecified_or_loopback && remote[0] >> 56 != 0xff;
}

}  // namespace warpline::stream
