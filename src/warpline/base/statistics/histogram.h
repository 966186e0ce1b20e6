// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace warpline {

/// Log-linear histogram of non-negative values (nanoseconds, mostly): exact below 128, within 1/64 above.
/// One thread records, any thread may read while it does.
class Histogram {
 public:
  static constexpr unsigned kSubBits = 6;  ///< 64 buckets an octave
  static constexpr unsigned kMaxBits =
      44;  ///< values of 2^44 (almost five hours of nanoseconds) and above share the last bucket

  /// Adds `value`, as if recorded `times` times.
  void record(std::uint64_t value, std::uint64_t times = 1) {
    bump(buckets_[bucket_of(value)], times);
    bump(count_, times);
    if (value > max_.load(std::memory_order_relaxed)) max_.store(value, std::memory_order_relaxed);
  }

  /// Adds all that `other` recorded.
  void merge(const Histogram& other);

  [[nodiscard]] std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }  ///< values recorded
  /// Largest value recorded, exact; 0: none.
  [[nodiscard]] std::uint64_t max() const { return max_.load(std::memory_order_relaxed); }

  /// The smallest recorded value v such that at least `fraction` (0..1) of all values are <= v,
  /// rounded up to its bucket's end and never above max(). 0 when nothing was recorded.
  [[nodiscard]] std::uint64_t quantile(double fraction) const;

 private:
  static constexpr std::size_t kBuckets = (std::size_t{kMaxBits - kSubBits} + 1) << kSubBits;

  static void bump(std::atomic<std::uint64_t>& cell, std::uint64_t n) {
    cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t value) {
    if (value >= std::uint64_t{1} << kMaxBits) return kBuckets - 1;
    if (value < std::uint64_t{1} << kSubBits) return static_cast<std::size_t>(value);
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - 1 - kSubBits;
    return (std::size_t{shift} << kSubBits) + static_cast<std::size_t>(value >> shift);
  }

  /// The largest value that falls into `bucket`.
  [[nodiscard]] static constexpr std::uint64_t bucket_end(std::size_t bucket) {
    if (bucket < std::size_t{2} << kSubBits) return bucket;
    const std::size_t shift = (bucket >> kSubBits) - 1;
    const std::uint64_t mantissa = bucket - (shift << kSubBits);
    return ((mantissa + 1) << shift) - 1;
  }

  std::array<std::atomic<std::uint64_t>, kBuckets> buckets_{};
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> max_{0};
};

}  // namespace warpline
