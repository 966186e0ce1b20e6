// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "warpline/base/large_vector.h"

namespace warpline::message {

inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// A fixed number of T, named by index. The last one given back is the next one taken, while it is in the cache.
template <typename T>
class IndexPool {
 public:
  explicit IndexPool(std::uint32_t capacity) : items_(capacity), free_(capacity) {
    for (std::uint32_t i = 0; i < capacity; ++i) free_[i] = capacity - 1 - i;
    free_count_ = capacity;
  }

  /// kNone if there is none left. What it held is still in it.
  [[nodiscard]] std::uint32_t take() { return free_count_ == 0 ? kNone : free_[--free_count_]; }
  void give(std::uint32_t index) { free_[free_count_++] = index; }

  [[nodiscard]] T& operator[](std::uint32_t index) { return items_[index]; }
  [[nodiscard]] const T& operator[](std::uint32_t index) const { return items_[index]; }
  [[nodiscard]] std::uint32_t index_of(const T& item) const {
    return static_cast<std::uint32_t>(&item - items_.data());
  }
  [[nodiscard]] std::uint32_t capacity() const { return static_cast<std::uint32_t>(items_.size()); }
  [[nodiscard]] std::uint32_t available() const { return free_count_; }

 private:
  LargeVector<T> items_;
  LargeVector<std::uint32_t> free_;
  std::uint32_t free_count_ = 0;
};

}  // namespace warpline::message
