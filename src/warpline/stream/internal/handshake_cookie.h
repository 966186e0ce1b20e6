// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "warpline/base/secrets/siphash.h"
#include "warpline/base/units.h"
#include "warpline/stream/internal/segment_reading.h"

namespace warpline::stream {

/// First sequence numbers that nobody else can tell (RFC 6528). Cookies among them say themselves what the SYN which
/// they answer offered (RFC 4987, 3.6): 2 bits of time, 3 of options, 27 of a keyed hash.
class HandshakeCookies {
 public:
  explicit HandshakeCookies(const std::array<std::uint8_t, 16>& secret) : key_(sip_key(secret)) {}

  /// Returns a number for a connection of these ends that is remembered: it grows by one each 4 us (RFC 9293, 3.4.1),
  /// so that segments of one before it, late and doubled, do not fit.
  [[nodiscard]] std::uint32_t next(const ConnectionKey& ends, Nanos now) const {
    const std::array<std::uint64_t, 5> words = {ends.local[0], ends.local[1], ends.remote[0], ends.remote[1],
                                                std::uint64_t{ends.local_port} << 16 | ends.remote_port};
    return static_cast<std::uint32_t>(siphash(key_, words)) + static_cast<std::uint32_t>(now.value / 4000);
  }

  /// Returns the cookie for a SYN with sequence number `peer_initial`.
  [[nodiscard]] std::uint32_t make(const ConnectionKey& ends, std::uint32_t peer_initial, const SynOptions& offered,
                                   Nanos now) const {
    const std::uint32_t options =
        (offered.window_scale ? 1U : 0U) | (offered.selective ? 2U : 0U) | (offered.timestamps ? 4U : 0U);
    return compose(ends, peer_initial, options, period(now));
  }

  /// Returns what was offered, if `cookie` was made for these at most 128 seconds ago.
  [[nodiscard]] std::optional<SynOptions> check(const ConnectionKey& ends, std::uint32_t peer_initial,
                                                std::uint32_t cookie, Nanos now) const {
    const std::uint64_t age = (period(now) - (cookie >> 30)) & 3;
    if (age > 1) return std::nullopt;
    const std::uint32_t options = cookie >> 27 & 7;
    if (compose(ends, peer_initial, options, period(now) - age) != cookie) return std::nullopt;
    return SynOptions{(options & 1) != 0, (options & 2) != 0, (options & 4) != 0};
  }

 private:
  static constexpr std::int64_t kPeriod = 64'000'000'000;  // ns

  [[nodiscard]] static std::uint64_t period(Nanos now) { return static_cast<std::uint64_t>(now.value / kPeriod); }

  [[nodiscard]] std::uint32_t compose(const ConnectionKey& ends, std::uint32_t peer_initial, std::uint32_t options,
                                      std::uint64_t period) const {
    const std::array<std::uint64_t, 7> words = {ends.local[0],
                                                ends.local[1],
                                                ends.remote[0],
                                                ends.remote[1],
                                                std::uint64_t{ends.local_port} << 16 | ends.remote_port,
                                                std::uint64_t{peer_initial} << 32 | options,
                                                period};
    const auto hash = static_cast<std::uint32_t>(siphash(key_, words));
    return static_cast<std::uint32_t>(period & 3) << 30 | options << 27 | (hash & 0x7ff'ffff);
  }

  SipKey key_;
};

}  // namespace warpline::stream
