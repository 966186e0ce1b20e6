// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "warpline/base/host_device.h"
#include "warpline/stream/internal/segment_reading.h"

namespace warpline::stream {

/// Where connections are found by their ends: open addressing with linear probing, in memory of the caller's that is at
/// most half full. A place holds a connection's index, and `key_of(index)` tells its ends. For host and device; one
/// thread changes it while nobody looks.
class KeyPlaces {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// `places` are a power of two many, `mask` + 1, and kNone at first. `secret` keeps peers from aiming at one place.
  WARPLINE_HD KeyPlaces(std::uint32_t* places, std::size_t mask, std::uint64_t secret)
      : places_(places), mask_(mask), secret_(secret) {}

  /// Returns the connection of these ends, or kNone.
  template <typename KeyOf>
  [[nodiscard]] WARPLINE_HD std::uint32_t find(const ConnectionKey& key, const KeyOf& key_of) const {
    for (std::size_t at = home(key);; at = next(at)) {
      if (places_[at] == kNone || key_of(places_[at]) == key) return places_[at];
    }
  }

  /// Adds a connection of ends that have none.
  WARPLINE_HD void insert(const ConnectionKey& key, std::uint32_t index) {
    std::size_t at = home(key);
    while (places_[at] != kNone) at = next(at);
    places_[at] = index;
  }

  /// Removes a connection. Without effect if it is not in the table.
  template <typename KeyOf>
  WARPLINE_HD void erase(std::uint32_t index, const KeyOf& key_of) {
    std::size_t hole = home(key_of(index));
    while (places_[hole] != index) {
      if (places_[hole] == kNone) return;
      hole = next(hole);
    }
    // Entries behind that would no longer be found move up (Knuth, volume 3, 6.4, algorithm R).
    for (std::size_t at = next(hole); places_[at] != kNone; at = next(at)) {
      const std::size_t wanted = home(key_of(places_[at]));
      if (((at - wanted) & mask_) < ((at - hole) & mask_)) continue;
      places_[hole] = places_[at];
      hole = at;
    }
    places_[hole] = kNone;
  }

 private:
  [[nodiscard]] WARPLINE_HD std::size_t home(const ConnectionKey& key) const { return key.hash(secret_) & mask_; }
  [[nodiscard]] WARPLINE_HD std::size_t next(std::size_t at) const { return (at + 1) & mask_; }

  std::uint32_t* places_;
  std::size_t mask_;
  std::uint64_t secret_;
};

}  // namespace warpline::stream
