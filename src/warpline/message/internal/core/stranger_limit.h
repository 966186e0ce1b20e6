// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <variant>
#include <vector>

#include "warpline/base/secrets/siphash.h"
#include "warpline/base/units.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// How many packets of strangers are looked at: so many a second, and half as many of one address, so that a flood from
/// one leaves others their part. Each rate is a virtual schedule (ITU-T I.371, GCRA) that lets a burst pass, of one
/// address half as long a one. Addresses, of IPv6 prefixes of 64 bits, share 256 schedules, by a keyed hash. A
/// quarter of the rate is left to packets from addresses that were refused a moment ago: a peer that repeats its hello
/// is one of those, and a packet of a flood under random addresses is not.
class StrangerLimit {
 public:
  StrangerLimit(std::uint32_t packets_per_s, std::uint32_t burst, SipKey key) : key_(key) {
    set_rate(packets_per_s, burst);
  }

  /// Any thread: another rate from now on, at least one per second.
  void set_rate(std::uint32_t packets_per_s, std::uint32_t burst) {
    packets_per_s = std::max(packets_per_s, 1U);
    interval_.store(kSecond / packets_per_s, std::memory_order_relaxed);
    slack_.store(burst * (kSecond / packets_per_s), std::memory_order_relaxed);
  }

  /// Whether a packet from there is one too many; counts it if not.
  [[nodiscard]] bool admits(const PeerAddress& from, Nanos now) {
    std::array<std::uint64_t, 2> words;
    std::memcpy(words.data(), from.ip.data(), from.ip.size());
    if (!std::holds_alternative<Ipv4Address>(ip_address(from))) words[1] = 0;
    const std::uint64_t hash = siphash(key_, words);
    Nanos& due = due_of_[hash % kSchedules];
    if (late(due, now)) return false;
    std::uint16_t& refused = refused_[hash / kSchedules % kRefused];
    const auto tag = static_cast<std::uint16_t>(hash >> 48 | 1);
    const bool again = refused == tag;
    if (late(due_, now) || (!again && late(due_fresh_, now))) {
      refused = tag;
      return false;
    }
    if (again) refused = 0;
    const std::int64_t interval = interval_.load(std::memory_order_relaxed);
    due = {std::max(due, now).value + 2 * interval};
    due_ = {std::max(due_, now).value + interval};
    if (!again) due_fresh_ = {std::max(due_fresh_, now).value + interval + interval / 3};
    return true;
  }

 private:
  static constexpr std::int64_t kSecond = 1'000'000'000;
  static constexpr std::size_t kSchedules = 256;
  static constexpr std::size_t kRefused = 1 << 16;

  [[nodiscard]] bool late(Nanos due, Nanos now) const {
    return due.value > now.value + slack_.load(std::memory_order_relaxed);
  }

  std::atomic<std::int64_t> interval_;  ///< nanoseconds
  std::atomic<std::int64_t> slack_;     ///< nanoseconds
  SipKey key_;
  Nanos due_;        ///< of the next packet
  Nanos due_fresh_;  ///< of the next packet from an address that was not refused
  std::vector<std::uint16_t> refused_ = std::vector<std::uint16_t>(kRefused);  ///< hashes of those, the newest
  std::array<Nanos, kSchedules> due_of_{};  ///< of the next packet from one of these addresses
};

}  // namespace warpline::message
