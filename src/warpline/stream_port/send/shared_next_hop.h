// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>

#include "warpline/base/address.h"
#include "warpline/base/units.h"

namespace warpline::stream_port {

/// Where the next hop of all queues of a port is, as the last queue heard that heard of it. Any thread.
class SharedNextHop {
 public:
  /// Returns its MAC address; none before somebody has heard of it.
  [[nodiscard]] std::optional<MacAddress> get() const { return address_in(word_.load(std::memory_order_acquire)); }
  /// Returns its MAC address if it is another one than at the last call with this `seen`, which begins with 0.
  [[nodiscard]] std::optional<MacAddress> news(std::uint64_t& seen) const {
    const std::uint64_t word = word_.load(std::memory_order_acquire);
    if (word == seen) return std::nullopt;
    seen = word;
    return address_in(word);
  }

  /// Enters what a neighbour's frame said: the first address at once, another one no sooner than a second after the one
  /// before, so that two stations that claim an address do not have all connections change places all the time.
  void heard(const MacAddress& mac, bool overrides, Nanos now) {
    constexpr std::int64_t kLocked = 1'000'000'000;
    const std::uint64_t word = word_of(mac);
    std::uint64_t known = word_.load(std::memory_order_acquire);
    if (known == word) return;
    std::int64_t since = since_.load(std::memory_order_relaxed);
    if (known != 0 && (!overrides || now.value - since < kLocked)) return;
    // One of the queues that hear it at once enters it.
    if (!since_.compare_exchange_strong(since, now.value, std::memory_order_relaxed)) return;
    word_.compare_exchange_strong(known, word, std::memory_order_release);
  }

 private:
  static constexpr std::uint64_t kKnown = std::uint64_t{1} << 48;

  static std::uint64_t word_of(const MacAddress& mac) {
    std::uint64_t word = 0;
    std::memcpy(&word, mac.bytes.data(), mac.bytes.size());
    return word | kKnown;
  }
  static std::optional<MacAddress> address_in(std::uint64_t word) {
    if (word == 0) return std::nullopt;
    MacAddress mac;
    std::memcpy(mac.bytes.data(), &word, mac.bytes.size());
    return mac;
  }

  std::atomic<std::uint64_t> word_{0};  ///< its bytes as they lie in memory, and kKnown; 0: not known
  std::atomic<std::int64_t> since_{0};  ///< when it was entered
};

}  // namespace warpline::stream_port
