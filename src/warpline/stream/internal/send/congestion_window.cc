// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/internal/send/congestion_window.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace warpline::stream {
namespace {

constexpr double kBeta = 0.7;  // RFC 9438, 4.6
constexpr double kC = 0.4;     // segments per second^3: RFC 9438, 5.1
constexpr double kRenoGrowth = 3 * (1 - kBeta) / (1 + kBeta);

}  // namespace

CongestionWindow::CongestionWindow(CongestionKind kind, std::uint32_t segment, std::uint64_t limit)
    : threshold_(std::numeric_limits<double>::max()),
      limit_(std::max(static_cast<double>(limit), static_cast<double>(segment))),
      segment_(segment),
      fixed_(kind == CongestionKind::fixed) {
  set(fixed_ ? limit_ : initial());
}

void CongestionWindow::set(double window) { window_ = std::clamp(window, segment_, limit_); }

void CongestionWindow::on_acknowledged(std::uint64_t bytes, Nanos now, Nanos round_trip) {
  if (fixed_) return;
  auto left = static_cast<double>(bytes);
  if (in_slow_start()) {
    const double grown = std::min(left, threshold_ - window_);
    set(window_ + grown);
    left -= grown;
    if (left <= 0) return;
  }
  avoid_congestion(left, now, round_trip);
}

void CongestionWindow::avoid_congestion(double bytes, Nanos now, Nanos round_trip) {
  if (begin_ == 0) {
    begin_ = std::max<std::int64_t>(now.value, 1);
    at_begin_ = window_;
    reno_ = window_;
    if (largest_ <= window_) {
      largest_ = window_;
      time_to_largest_ = 0;
    } else {
      time_to_largest_ = std::cbrt((largest_ - at_begin_) / segment_ / kC);
    }
  }
  const auto cubic_at = [this](double seconds) {
    const double t = seconds - time_to_largest_;
    return kC * t * t * t * segment_ + largest_;
  };
  const double elapsed = static_cast<double>(now.value - begin_) * 1e-9;
  const double target =
      std::clamp(cubic_at(elapsed + static_cast<double>(round_trip.value) * 1e-9), window_, 1.5 * window_);
  // RFC 9438, 4.3: as fast as Reno at least, once at its window of before at Reno's own pace.
  const double growth = reno_ >= before_ ? 1 : kRenoGrowth;
  reno_ += growth * segment_ * bytes / window_;
  if (cubic_at(elapsed) < reno_) {
    set(std::max(window_, reno_));
  } else {
    set(window_ + (target - window_) / window_ * bytes);
  }
}

void CongestionWindow::reduce() {
  before_ = window_;
  // RFC 9438, 4.7, fast convergence: who loses before it is where it was leaves room for others.
  largest_ = window_ < largest_ ? window_ * (1 + kBeta) / 2 : window_;
  threshold_ = std::max(window_ * kBeta, 2 * segment_);
  begin_ = 0;
}

void CongestionWindow::on_lost_syn() {
  if (!fixed_) set(segment_);
}

void CongestionWindow::on_loss() {
  if (fixed_) return;
  reduce();
  set(threshold_);
}

void CongestionWindow::on_timeout(bool first) {
  if (fixed_) return;
  if (first) reduce();
  largest_ = 0;  // RFC 9438, 4.8: the plateau is where the next congestion avoidance begins
  begin_ = 0;
  set(segment_);
}

void CongestionWindow::on_idle() {
  if (fixed_) return;
  set(std::min(window_, initial()));
  begin_ = 0;
}

}  // namespace warpline::stream
