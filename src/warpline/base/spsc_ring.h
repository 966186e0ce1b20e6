// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace warpline {

/// A bounded queue between two threads (Lamport, "Specifying Concurrent Program Modules", 1983; each side remembers
/// what it saw of the other's index last). One thread pushes, one pops; neither waits, locks or allocates.
template <typename T>
class SpscRing {
 public:
  /// At least `capacity` (> 0) at once.
  explicit SpscRing(std::uint32_t capacity) : items_(std::bit_ceil(std::size_t{capacity})) {}

  /// False if it is full.
  bool push(const T& item) {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_seen_ == items_.size()) {
      head_seen_ = head_.load(std::memory_order_acquire);
      if (tail - head_seen_ == items_.size()) return false;
    }
    items_[tail & (items_.size() - 1)] = item;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  /// False if it is empty.
  bool pop(T& item) {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_seen_) {
      tail_seen_ = tail_.load(std::memory_order_acquire);
      if (head == tail_seen_) return false;
    }
    item = items_[head & (items_.size() - 1)];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  /// By the thread that pops.
  [[nodiscard]] bool empty() const {
    return head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::size_t capacity() const { return items_.size(); }

 private:
  static constexpr std::size_t kLine = 64;

  alignas(kLine) std::atomic<std::uint64_t> tail_{0};
  std::uint64_t head_seen_ = 0;  ///< the pushing thread's
  alignas(kLine) std::atomic<std::uint64_t> head_{0};
  std::uint64_t tail_seen_ = 0;  ///< the popping thread's
  alignas(kLine) std::vector<T> items_;
};

}  // namespace warpline
