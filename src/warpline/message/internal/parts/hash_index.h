// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "warpline/base/large_vector.h"
#include "warpline/message/internal/parts/index_pool.h"

namespace warpline::message {

/// Numbers by a keyed hash of 64 bits, which stands for what was hashed: peers cannot choose collisions. Open
/// addressing, half full at most.
class HashIndex {
 public:
  explicit HashIndex(std::uint32_t capacity) : entries_(std::bit_ceil(std::size_t{capacity} * 2 + 1)) {}

  /// kNone if there is none.
  [[nodiscard]] std::uint32_t find(std::uint64_t hash) const {
    std::size_t i = home(hash);
    while (entries_[i].number != kNone && entries_[i].hash != hash) i = next(i);
    return entries_[i].number;
  }

  /// Not in it before; at most `capacity` are.
  void insert(std::uint64_t hash, std::uint32_t number) {
    std::size_t i = home(hash);
    while (entries_[i].number != kNone) i = next(i);
    entries_[i] = {hash, number};
  }

  /// Nothing if it has another number.
  void erase(std::uint64_t hash, std::uint32_t number) {
    std::size_t i = home(hash);
    while (entries_[i].number != number) {
      if (entries_[i].number == kNone) return;
      i = next(i);
    }
    // Those behind move up if their home allows it (Knuth, TAOCP 3, section 6.4, algorithm R).
    entries_[i].number = kNone;
    for (std::size_t j = next(i); entries_[j].number != kNone; j = next(j)) {
      const std::size_t wanted = home(entries_[j].hash);
      const bool reachable = i <= j ? (i < wanted && wanted <= j) : (i < wanted || wanted <= j);
      if (reachable) continue;
      entries_[i] = entries_[j];
      entries_[j].number = kNone;
      i = j;
    }
  }

 private:
  struct Entry {
    std::uint64_t hash = 0;
    std::uint32_t number = kNone;
  };

  [[nodiscard]] std::size_t next(std::size_t i) const { return (i + 1) & (entries_.size() - 1); }
  [[nodiscard]] std::size_t home(std::uint64_t hash) const { return hash & (entries_.size() - 1); }

  LargeVector<Entry> entries_;
};

}  // namespace warpline::message
