// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "warpline/base/secrets/siphash.h"
#include "warpline/base/units.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// How many packets of strangers are looked at: so many a second, and half as many of one address, so that a flood from
/// one leaves others their part. Each rate is a virtual schedule (ITU-T I.371, GCRA) that lets a burst pass, of one
/// address half as long a one. Addresses share 256 schedules, by a keyed hash.
class StrangerLimit {
 public:
  StrangerLimit(std::uint32_t packets_per_s, std::uint32_t burst, SipKey key) : key_(key) {
    set_rate(packets_per_s, burst);
  }

  /// Any thread: another rate from now on.
  void set_rate(std::uint32_t packets_per_s, std::uint32_t burst) {
    interval_.store(kSecond / packets_per_s, std::memory_order_relaxed);
    slack_.store(burst * (kSecond / packets_per_s), std::memory_order_relaxed);
  }

  /// Whether a packet from there is one too many; counts it if not.
  [[nodiscard]] bool admits(const PeerAddress& from, Nanos now) {
    if (late(due_, now)) return false;  // before the hash: of a flood it is what most packets come to
    std::array<std::uint64_t, 2> words;
    std::memcpy(words.data(), from.ip.data(), from.ip.size());
    Nanos& due = due_of_[siphash(key_, words) % kSchedules];
    if (late(due, now)) return false;
    const std::int64_t interval = interval_.load(std::memory_order_relaxed);
    due = {std::max(due, now).value + 2 * interval};
    due_ = {std::max(due_, now).value + interval};
    return true;
  }

 private:
  static constexpr std::int64_t kSecond = 1'000'000'000;
  static constexpr std::size_t kSchedules = 256;

  [[nodiscard]] bool late(Nanos due, Nanos now) const {
    return due.value > now.value + slack_.load(std::memory_order_relaxed);
  }

  std::atomic<std::int64_t> interval_;  ///< nanoseconds
  std::atomic<std::int64_t> slack_;     ///< nanoseconds
  SipKey key_;
  Nanos due_;                               ///< of the next packet
  std::array<Nanos, kSchedules> due_of_{};  ///< of the next packet from one of these addresses
};

}  // namespace warpline::message
