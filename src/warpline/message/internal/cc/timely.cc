// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/cc/timely.h"

#include <algorithm>

#include "warpline/message/internal/cc/limits.h"

namespace warpline::message {
namespace {

// Section 4.3: after five completions with a gradient of 0 or below, five increments at a time.
constexpr float kHyperactiveAfter = 5;
constexpr double kHyperactiveIncrements = 5;

}  // namespace

Timely::Timely(const CcConfig& config) {
  const CcConfig::Timely& timely = config.timely;
  mtu_ = as_float(sane_mtu(config));
  max_window_ = as_float(sane_max_window(config));
  min_rate_ = as_float(clamped(timely.min_rate, 1e3, 1e12));
  max_rate_ = as_float(clamped(timely.max_rate, min_rate_, 1e12));
  increment_ = as_float(clamped(timely.increment, 1, 1e12));
  alpha_ = as_float(clamped(timely.alpha, 0, 1));
  beta_ = as_float(clamped(timely.beta, 0, 1));
  low_ = as_float(sane_delay(timely.low));
  high_ = as_float(std::max<double>(sane_delay(timely.high), low_));
  rate_ = max_rate_;
}

CcOutput Timely::on_ack(const CcSample& sample) {
  const double rtt = fabric_delay(sample);
  if (previous_rtt_ == 0) {
    previous_rtt_ = min_rtt_ = as_float(rtt);
    updated_at_ = sample.now;
    return output();
  }
  const double completions = std::min(elapsed(updated_at_, sample.now) / min_rtt_, 1.0);
  updated_at_ = sample.now;
  difference_ = as_float((1 - alpha_) * difference_ + alpha_ * (rtt - previous_rtt_));
  previous_rtt_ = as_float(rtt);
  min_rtt_ = std::min(min_rtt_, previous_rtt_);
  const double gradient = difference_ / min_rtt_;

  falling_completions_ =
      gradient > 0 ? 0 : std::min(falling_completions_ + static_cast<float>(completions), kHyperactiveAfter);
  double rate = rate_;
  if (rtt < low_) {
    rate += increment_ * completions;
  } else if (rtt > high_) {
    rate *= 1 - beta_ * completions * (1 - high_ / rtt);
  } else if (gradient <= 0) {
    rate += increment_ * completions * (falling_completions_ >= kHyperactiveAfter ? kHyperactiveIncrements : 1);
  } else {
    rate *= 1 - std::min(beta_ * completions * gradient, 1.0);
  }
  rate_ = as_float(clamped(rate, min_rate_, max_rate_));
  return output();
}

CcOutput Timely::output() const {
  return {max_window_, rate_ < max_rate_ ? pacing_gap_of(1e9 * mtu_ / rate_) : Nanos{0}};
}

}  // namespace warpline::message
