// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace warpline {

/// A bounded queue from any threads to one, after D. Vyukov's bounded queue of 2010: each place has a number that says
/// whose turn it is there. Nobody locks or allocates, and a push waits for nobody; what a thread was stopped in the
/// middle of pushing hides what was pushed after it until that thread goes on.
template <typename T>
class MpscRing {
 public:
  /// At least `capacity` at once, and two.
  explicit MpscRing(std::uint32_t capacity) : places_(std::bit_ceil(std::max<std::size_t>(capacity, 2))) {
    for (std::size_t i = 0; i < places_.size(); ++i) places_[i].turn.store(i, std::memory_order_relaxed);
  }

  /// False if it is full. Any thread.
  bool push(const T& item) {
    std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    while (true) {
      Place& place = places_[tail & (places_.size() - 1)];
      const std::uint64_t turn = place.turn.load(std::memory_order_acquire);
      if (turn == tail) {
        if (!tail_.compare_exchange_weak(tail, tail + 1, std::memory_order_relaxed)) continue;
        place.item = item;
        place.turn.store(tail + 1, std::memory_order_release);
        return true;
      }
      if (turn < tail) return false;  // what was pushed there a round ago was not popped
      tail = tail_.load(std::memory_order_relaxed);
    }
  }

  /// False if nothing is there. The one thread that pops.
  bool pop(T& item) {
    Place& place = places_[head_ & (places_.size() - 1)];
    if (place.turn.load(std::memory_order_acquire) != head_ + 1) return false;
    item = place.item;
    place.turn.store(head_ + places_.size(), std::memory_order_release);
    ++head_;
    return true;
  }

  [[nodiscard]] std::size_t capacity() const { return places_.size(); }

 private:
  static constexpr std::size_t kLine = 64;
  struct Place {
    std::atomic<std::uint64_t> turn{0};  ///< n: of the push with number n; n + 1: of the pop after it
    T item{};
  };

  alignas(kLine) std::atomic<std::uint64_t> tail_{0};
  alignas(kLine) std::uint64_t head_ = 0;  ///< the popping thread's
  alignas(kLine) std::vector<Place> places_;
};

}  // namespace warpline
