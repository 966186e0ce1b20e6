// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace warpline {

/// A median with its 95 % interval by percentile bootstrap (Efron and Tibshirani 1993, 13.3).
struct Estimate {
  double median = 0;
  double low = 0;
  double high = 0;

  [[nodiscard]] bool touches(const Estimate& other) const { return low <= other.high && other.low <= high; }
};

/// Returns the median of at least one value.
[[nodiscard]] double median_of(std::vector<double> values);
/// Estimates the median of at least one value; the same seed gives the same result.
[[nodiscard]] Estimate estimate(std::span<const double> values, std::uint64_t seed = 1);
/// Estimates the median of a[i] / b[i], both measured in the same round; a and b must have the same size.
[[nodiscard]] Estimate estimate_ratio(std::span<const double> a, std::span<const double> b, std::uint64_t seed = 1);

}  // namespace warpline
