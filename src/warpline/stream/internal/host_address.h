// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/stream/internal/address_words.h"
#include "warpline/stream/internal/connection.h"

namespace warpline::stream {

/// Returns whether the peer's address is one that a host may have: not unspecified, loopback, group, broadcast, or our
/// own (RFC 9293, 3.9.2.3; RFC 1122, 3.2.1.3).
inline bool is_another_host(const ConnectionKey& key) {
  // IPv4 addresses inside IPv6 addresses are for programs (RFC 4291, 2.5.5.2): no frame has them.
  if (is_ipv4(key.remote) != is_ipv4(key.local)) return false;
  if (key.remote[0] == key.local[0] && key.remote[1] == key.local[1]) return false;
  if (is_ipv4(key.remote)) {
    const auto first = static_cast<std::uint8_t>(key.remote[1] >> 24);
    return first != 0 && first != 127 && first < 224;
  }
  const bool unspecified_or_loopback = key.remote[0] == 0 && key.remote[1] <= 1;
  return !unspecified_or_loopback && key.remote[0] >> 56 != 0xff;
}

}  // namespace warpline::stream
