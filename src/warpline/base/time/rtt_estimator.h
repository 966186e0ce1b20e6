// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/base/units.h"

namespace warpline {

/// Smoothed round trip and its variation (RFC 6298, section 2) of samples without the peer's delay.
class RttEstimator {
 public:
  void sample(Nanos rtt) {
    const std::int64_t value = std::max<std::int64_t>(rtt.value, 1);
    if (smoothed_ == 0) {
      smoothed_ = value;
      variation_ = value / 2;
      min_ = value;
    } else {
      const std::int64_t error = value - smoothed_;
      variation_ += ((error < 0 ? -error : error) - variation_) / 4;
      smoothed_ = std::max<std::int64_t>(smoothed_ + error / 8, 1);
      min_ = std::min(min_, value);
    }
  }

  /// What another flow on the same path knows is the first sample, as far as it goes (RFC 9040, section 6).
  [[nodiscard]] RttEstimator inherited() const {
    RttEstimator heir = *this;
    heir.variation_ = std::max(variation_, smoothed_ / 2);
    return heir;
  }
  [[nodiscard]] bool known() const { return smoothed_ != 0; }
  [[nodiscard]] Nanos smoothed() const { return {smoothed_}; }
  [[nodiscard]] Nanos min() const { return {min_}; }
  /// Smoothed and four times the variation, at least `granularity` (RFC 6298, section 2.3).
  [[nodiscard]] Nanos timeout(Nanos granularity) const {
    return {smoothed_ + std::max(granularity.value, 4 * variation_)};
  }

 private:
  std::int64_t smoothed_ = 0;  ///< nanoseconds, as all; 0: no sample yet
  std::int64_t variation_ = 0;
  std::int64_t min_ = 0;
};

}  // namespace warpline
