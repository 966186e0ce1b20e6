// SPDX-License-Identifier: Apache-2.0
#include "page/draw/scale.h"

#include <algorithm>
#include <cmath>

namespace warpline::page {
namespace {

constexpr double kFar = 60;     ///< from this ratio of the largest to the smallest on the axis is logarithmic
constexpr double kClose = 0.6;  ///< from this ratio of the smallest to the largest on the axis is cut
constexpr double kMargin = 0.06;
constexpr int kMostTicks = 5;

double round_step(double length) {
  const double power = std::pow(10, std::floor(std::log10(length)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= length) return factor * power;
  }
  return 10 * power;
}

}  // namespace

Scale::Scale(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  if (least > 0 && most / least >= kFar) {
    kind_ = Kind::logarithmic;
    low_ = least / 1.3;
    high_ = most * 1.3;
    return;
  }
  const bool cut = least > 0 && least >= kClose * most && most > least;
  if (cut) kind_ = Kind::cut;
  low_ = cut ? least : std::min(least, 0.0);
  high_ = std::max(most, cut ? most : 0.0);
  double margin = (high_ - low_) * kMargin;
  // Values that hardly differ: an axis of less than the precision of a double is none.
  margin = std::max(margin, std::max(std::abs(low_), std::abs(high_)) * 1e-9);
  if (margin == 0 || !std::isfinite(margin)) {
    low_ = std::isfinite(margin) ? 0 : least;
    high_ = std::isfinite(margin) ? 1 : most;
    return;
  }
  if (low_ != 0) low_ -= margin;
  if (high_ != 0) high_ += margin;
}

double Scale::place(double value) const {
  const double part = kind_ == Kind::logarithmic ? std::log(std::max(value, low_) / low_) / std::log(high_ / low_)
                                                 : (value / 2 - low_ / 2) / (high_ / 2 - low_ / 2);
  return std::isfinite(part) ? std::clamp(part, 0.0, 1.0) * 1000 : 0;
}

std::vector<double> Scale::ticks() const {
  std::vector<double> result;
  if (kind_ == Kind::logarithmic) {
    const int first = static_cast<int>(std::ceil(std::log10(low_)));
    const int last = static_cast<int>(std::floor(std::log10(high_)));
    const int step = std::max(1, (last - first + kMostTicks) / kMostTicks);
    for (int power = first; power <= last; power += step) result.push_back(std::pow(10, power));
    return result;
  }
  const double step = round_step((high_ - low_) / (kMostTicks - 1));
  if (!std::isfinite(step) || step <= 0) return result;
  const double first = std::ceil(low_ / step);
  for (int i = 0; i <= kMostTicks; ++i) {
    const double tick = (first + i) * step;
    if (tick <= high_ && std::isfinite(tick)) result.push_back(tick);
  }
  return result;
}

}  // namespace warpline::page
