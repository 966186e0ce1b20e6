// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/cc/swift.h"

#include <algorithm>
#include <cmath>

#include "warpline/message/internal/cc/limits.h"

namespace warpline::message {
namespace {

constexpr double kLossWeight = 1.0 / 256;
// Next to nothing, in packets, and the round trips in a row that tell a long path.
constexpr float kNextToNothing = 0.25F;
constexpr std::uint8_t kLongPathSamples = 5;
constexpr std::uint8_t kTimeoutsUntilReset = 5;  // RETX_RESET_THRESHOLD of algorithm 1

}  // namespace

Swift::Swift(const CcConfig& config) {
  const CcConfig::Swift& swift = config.swift;
  const double mtu = sane_mtu(config);
  mtu_ = as_float(mtu);
  base_target_ = as_float(sane_delay(swift.base_target));
  scaling_range_ = as_float(clamped(static_cast<double>(swift.scaling_range.value), 0, 10e9));
  const double fewest = clamped(swift.scaling_min_packets, 1e-3, 1e6);
  const double most = clamped(swift.scaling_max_packets, 2 * fewest, 2e6);
  const double alpha = scaling_range_ / (1 / std::sqrt(fewest) - 1 / std::sqrt(most));
  scaling_alpha_ = as_float(alpha);
  scaling_beta_ = as_float(-alpha / std::sqrt(most));
  endpoint_target_ = as_float(sane_delay(swift.endpoint_target));
  increment_ = as_float(clamped(swift.increment_packets, 1e-3, 1e3));
  decrease_ = as_float(clamped(swift.decrease, 0, 1));
  max_decrease_ = as_float(clamped(swift.max_decrease, 0, 0.99));
  max_window_ = as_float(sane_max_window(config) / mtu);
  min_window_ = as_float(clamped(swift.min_window_packets, 1e-4, 1));
  tolerated_loss_ = as_float(clamped(swift.tolerated_loss, 0, 1));
  const float initial = as_float(clamped(config.initial_window_bytes / mtu, 1, max_window_));
  fabric_ = {initial, kLongAgo};
  endpoint_ = {initial, kLongAgo};
}

CcOutput Swift::on_ack(const CcSample& sample) {
  const double rtt = sane_delay(sample.rtt);
  const double delay = fabric_delay(sample);
  rtt_ = as_float(rtt);
  loss_ = as_float(loss_ * (1 - std::min(kLossWeight * sample.acked_packets, 1.0)));
  timeouts_ = 0;

  const double target = target_delay();
  const double remote = rtt - delay;
  if (delay >= target || remote >= endpoint_target_) slow_start_ = false;
  const bool grows = window_filled(sample, output().window_bytes);
  const double acked = grows ? static_cast<double>(sample.acked_bytes) / mtu_ : 0;
  follow(fabric_, delay, target, acked, sample.now);
  follow(endpoint_, remote, endpoint_target_, acked, sample.now);
  learn_path(delay, target);
  return output();
}

/// Algorithm 1 of the paper, "On receiving ACK".
void Swift::follow(Window& window, double delay, double target, double acked_packets, Nanos now) {
  if (delay < target) {
    const double increment = slow_start_ ? 1 : increment_ / std::max(window.packets, 1.0F);
    window.packets = as_float(std::min<double>(window.packets + increment * acked_packets, max_window_));
  } else if (may_decrease(window, now)) {
    multiply(window, std::max(1 - decrease_ * (delay - target) / delay, 1.0 - max_decrease_), now);
  }
}

void Swift::learn_path(double delay, double target) {
  if (delay < target || fabric_.packets > kNextToNothing) {
    above_target_ = 0;
    return;
  }
  path_rtt_ = as_float(above_target_ == 0 ? delay : std::min<double>(path_rtt_, delay));
  if (++above_target_ < kLongPathSamples) return;
  above_target_ = 0;
  base_target_ = as_float(std::min(path_rtt_ + base_target_ / 2.0, 10e9));
  slow_start_ = true;
}

/// Algorithm 1 of the paper, "On retransmit timeout" and "On fast recovery".
CcOutput Swift::on_loss(Nanos now, bool timeout) {
  loss_ = as_float(loss_ + kLossWeight * (1 - loss_));
  if (!timeout && loss_ <= tolerated_loss_) return output();
  slow_start_ = false;
  timeouts_ = timeout ? static_cast<std::uint8_t>(std::min<int>(timeouts_ + 1, kTimeoutsUntilReset)) : std::uint8_t{0};
  if (timeouts_ == kTimeoutsUntilReset) {
    multiply(fabric_, 0, now);
  } else if (may_decrease(fabric_, now)) {
    multiply(fabric_, 1.0 - max_decrease_, now);
  }
  return output();
}

void Swift::multiply(Window& window, double factor, Nanos now) const {
  window.packets = as_float(std::max<double>(window.packets * factor, min_window_));
  window.decreased_at = now;
}

bool Swift::may_decrease(const Window& window, Nanos now) const {
  return has_passed(round_trip(), window.decreased_at, now);
}

double Swift::round_trip() const { return rtt_ == 0 ? base_target_ : rtt_; }

double Swift::target_delay() const {
  const double scaling = scaling_alpha_ / std::sqrt(fabric_.packets) + scaling_beta_;
  return base_target_ + clamped(scaling, 0, scaling_range_);
}

Nanos Swift::target() const { return Nanos{static_cast<std::int64_t>(target_delay())}; }

CcOutput Swift::output() const {
  const double packets = std::min(fabric_.packets, endpoint_.packets);
  return {packets * mtu_, packets < 1 ? pacing_gap_of(std::min(round_trip(), target_delay()) / packets) : Nanos{0}};
}

}  // namespace warpline::message
