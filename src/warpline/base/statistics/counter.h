// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "warpline/base/verdict.h"

namespace warpline {

/// A count that one thread writes and any thread reads. Relaxed: readers see a recent value, never a torn one;
/// no locked instruction on the writer's side.
class Counter {
 public:
  /// Adds `n`. By the writer alone.
  [[gnu::always_inline]] void add(std::uint64_t n) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }  ///< any thread

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Dropped packets by reason. One writer.
class DropCounters {
 public:
  /// Counts `n` packets; by the writer alone.
  void add(Verdict reason, std::uint64_t n = 1) { counts_[static_cast<std::size_t>(reason)].add(n); }
  /// Packets dropped for this reason. Any thread.
  [[nodiscard]] std::uint64_t get(Verdict reason) const { return counts_[static_cast<std::size_t>(reason)].get(); }
  /// Packets dropped for any reason; any thread.
  [[nodiscard]] std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const Counter& count : counts_) sum += count.get();
    return sum;
  }

 private:
  std::array<Counter, kVerdicts> counts_;
};

}  // namespace warpline
