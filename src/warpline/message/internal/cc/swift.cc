// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/cc/swift.h"

#include <algorithm>
#include <cmath>

#include "warpline/base/random.h"

namespace warpline::message {
namespace {

constexpr double kLossWeight = 1.0 / 256;
// Round trips in a row above the target, with the smallest window, that tell a long path: few if they are steady, which
// the round trips through a queue of many flows are not.
constexpr std::uint8_t kSteadyPathSamples = 5;
constexpr std::uint8_t kLongPathSamples = 16;
constexpr float kSteady = 1 + 1.0F / 16;  ///< the greatest of them, times the least
constexpr float kSmallestWindow = 1.01F;  ///< times the least one, for rounding
// Packets whose least round trip says that the path is not as long as was learned.
constexpr std::uint32_t kShortPathPackets = 256;
constexpr std::uint8_t kTimeoutsUntilReset = 5;  // RETX_RESET_THRESHOLD of algorithm 1

}  // namespace

Swift::Swift(const CcConfig& config) {
  const CcConfig::Swift& swift = config.swift;
  const double mtu = sane_mtu(config);
  mtu_ = as_float(mtu);
  base_target_ = given_target_ = as_float(sane_delay(swift.base_target));
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
  fabric_ = endpoint_ = as_float(clamped(config.initial_window_bytes / mtu, 1, max_window_));
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
  follow(fabric_, fabric_decreased_at_, delay, target, acked, sample.now);
  follow(endpoint_, endpoint_decreased_at_, remote, endpoint_target_, acked, sample.now);
  learn_path(delay, target);
  if (base_target_ > given_target_) unlearn_path(delay, sample.acked_packets);
  draw_gap(sample);
  return output();
}

/// Uniform, out of what was drawn before and of the sample: no two flows have the same times for long.
void Swift::draw_gap(const CcSample& sample) {
  const auto times = static_cast<std::uint64_t>(sample.now.value) ^ static_cast<std::uint64_t>(sample.rtt.value) << 32;
  drawn_ = static_cast<std::uint32_t>(mix64(times + drawn_) >> 32);
}

/// Algorithm 1 of the paper, "On receiving ACK".
void Swift::follow(float& window, Nanos& decreased_at, double delay, double target, double acked_packets, Nanos now) {
  if (delay < target) {
    const double increment = slow_start_ ? 1 : increment_ / std::max(window, 1.0F);
    window = as_float(std::min<double>(window + increment * acked_packets, max_window_));
  } else if (may_decrease(decreased_at, now)) {
    const double factor = std::max(1 - decrease_ * (delay - target) / delay, 1.0 - max_decrease_);
    multiply(window, decreased_at, factor, smallest_window(), now);
  }
}

/// Only with the smallest window: with a larger one a delay above the target may be the queue of many flows that share
/// a link, which the target is to bound. Half of the given target is added, not of the learned one: flows that take a
/// queue for the path would raise it further and further.
void Swift::learn_path(double delay, double target) {
  if (delay < target || fabric_ > smallest_window() * kSmallestWindow) {
    above_target_ = 0;
    return;
  }
  const bool first = above_target_ == 0;
  path_rtt_ = as_float(first ? delay : std::min<double>(path_rtt_, delay));
  path_rtt_max_ = as_float(first ? delay : std::max<double>(path_rtt_max_, delay));
  const bool steady = path_rtt_max_ <= kSteady * path_rtt_;
  if (++above_target_ < (steady ? kSteadyPathSamples : kLongPathSamples)) return;
  above_target_ = 0;
  base_target_ = as_float(std::min(path_rtt_ + given_target_ / 2.0, 10e9));
  for (float* window : {&fabric_, &endpoint_}) *window = as_float(std::max<double>(*window, smallest_window()));
  slow_start_ = true;
  counted_packets_ = 0;
}

/// The least delay of many packets bounds the path's: a target far beyond it was learned of a queue, or of a path that
/// is gone.
void Swift::unlearn_path(double delay, std::uint32_t acked_packets) {
  least_delay_ = as_float(counted_packets_ == 0 ? delay : std::min<double>(least_delay_, delay));
  counted_packets_ = static_cast<std::uint16_t>(counted_packets_ + std::min(acked_packets, kShortPathPackets));
  if (counted_packets_ < kShortPathPackets) return;
  counted_packets_ = 0;
  base_target_ = std::clamp(least_delay_ + given_target_ / 2, given_target_, base_target_);
}

void Swift::remember() {
  remembered_window_ = fabric_;
  remembered_slow_start_ = slow_start_;
}

CcOutput Swift::restore() {
  fabric_ = std::max(fabric_, remembered_window_);
  slow_start_ = slow_start_ || remembered_slow_start_;
  return output();
}

CcOutput Swift::on_idle(double initial_window_bytes) {
  const float initial = as_float(clamped(initial_window_bytes / mtu_, 1, max_window_));
  fabric_ = std::min(fabric_, initial);
  endpoint_ = std::min(endpoint_, initial);
  slow_start_ = true;
  return output();
}

/// Algorithm 1 of the paper, "On retransmit timeout" and "On fast recovery".
CcOutput Swift::on_loss(Nanos now, bool timeout) {
  loss_ = as_float(loss_ + kLossWeight * (1 - loss_));
  if (!timeout && loss_ <= tolerated_loss_) return output();
  slow_start_ = false;
  timeouts_ = timeout ? static_cast<std::uint8_t>(std::min<int>(timeouts_ + 1, kTimeoutsUntilReset)) : std::uint8_t{0};
  const double least = std::min(smallest_window(), 1.0);
  if (timeouts_ == kTimeoutsUntilReset) {
    multiply(fabric_, fabric_decreased_at_, 0, least, now);
  } else if (may_decrease(fabric_decreased_at_, now)) {
    multiply(fabric_, fabric_decreased_at_, 1.0 - max_decrease_, least, now);
  }
  return output();
}

void Swift::multiply(float& window, Nanos& decreased_at, double factor, double least, Nanos now) {
  window = as_float(std::max(window * factor, std::min<double>(window, least)));
  decreased_at = now;
}

/// As many packets in a round trip of the learned target as the smallest window sends in the same time with the given
/// one.
double Swift::smallest_window() const { return std::min(min_window_ * (base_target_ / given_target_), max_window_); }

bool Swift::may_decrease(Nanos decreased_at, Nanos now) const { return has_passed(round_trip(), decreased_at, now); }

double Swift::round_trip() const { return rtt_ == 0 ? base_target_ : rtt_; }

double Swift::target_delay() const {
  const double scaling = scaling_alpha_ / std::sqrt(fabric_) + scaling_beta_;
  return base_target_ + clamped(scaling, 0, scaling_range_);
}

Nanos Swift::target() const { return Nanos{static_cast<std::int64_t>(target_delay())}; }

CcOutput Swift::output() const {
  const double packets = std::min(fabric_, endpoint_);
  if (packets >= 1) return {packets * mtu_, Nanos{0}};
  constexpr double kMean = 1U << 31;
  const double gap = std::min(round_trip(), target_delay()) / packets;
  return {packets * mtu_, pacing_gap_of(gap * drawn_ / kMean)};
}

}  // namespace warpline::message
