// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

namespace warpline::vnic {

/// The steady rate at which frames come in, which may step up or down once. Times are nanoseconds since the beginning.
class SupplyRate {
 public:
  /// As many frames as are asked for are there.
  SupplyRate() = default;
  /// `frames_per_s`, and from `step_nanos` on `factor` times as many. A rate of 0 has no schedule.
  explicit SupplyRate(double frames_per_s, double factor = 1, double step_nanos = 0)
      : per_nano_(frames_per_s / 1e9), factor_(factor), step_nanos_(step_nanos) {}

  [[nodiscard]] bool endless() const { return per_nano_ == 0; }
  /// Returns how many frames have come by that time. Only with a rate, as below.
  [[nodiscard]] double frames_by(double nanos) const {
    return per_nano_ * (nanos + (factor_ - 1) * std::max(0.0, nanos - step_nanos_));
  }
  /// Returns when so many frames have come.
  [[nodiscard]] double nanos_of(double frames) const {
    const double nanos = frames / per_nano_;
    return nanos <= step_nanos_ ? nanos : step_nanos_ + (nanos - step_nanos_) / factor_;
  }

 private:
  double per_nano_ = 0;
  double factor_ = 1;
  double step_nanos_ = 0;
};

}  // namespace warpline::vnic
