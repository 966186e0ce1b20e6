// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/cc/dctcp.h"

#include <algorithm>

#include "warpline/message/internal/cc/limits.h"

namespace warpline::message {
Dctcp::Dctcp(const CcConfig& config)
    : mtu_(as_float(sane_mtu(config))),
      max_window_(as_float(sane_max_window(config))),
      gain_(as_float(clamped(config.dctcp.gain, 1e-3, 1))),
      window_(as_float(clamped(config.initial_window_bytes, mtu_, max_window_))),
      slow_start_threshold_(max_window_),
      halved_at_(kLongAgo) {}

CcOutput Dctcp::on_ack(const CcSample& sample) {
  const double rtt = sane_delay(sample.rtt);
  rtt_ = as_float(rtt_ == 0 ? rtt : rtt_ + (rtt - rtt_) / 8);
  const double acked = sample.acked_bytes;
  const double marked_share =
      sample.acked_packets == 0 ? 0
                                : std::min(static_cast<double>(sample.ecn_marked_packets) / sample.acked_packets, 1.0);
  observed_bytes_ += as_float(acked);
  marked_bytes_ += as_float(acked * marked_share);

  if (marked_share == 0 && window_filled(sample, window_)) {
    const double growth = window_ < slow_start_threshold_ ? acked : mtu_ * std::min(acked / window_, 1.0);
    window_ = as_float(std::min<double>(window_ + growth, max_window_));
  }
  if (observed_bytes_ >= observation_window_) end_observation(sample.in_flight_bytes);
  return output();
}

/// Section 3.3, steps 4 to 9: about once a round trip.
void Dctcp::end_observation(double in_flight_bytes) {
  if (observed_bytes_ > 0) alpha_ += gain_ * (marked_bytes_ / observed_bytes_ - alpha_);
  if (marked_bytes_ > 0) reduce(1 - alpha_ / 2);
  observed_bytes_ = 0;
  marked_bytes_ = 0;
  observation_window_ = as_float(in_flight_bytes);
}

/// Section 3.5: as without ECN.
CcOutput Dctcp::on_loss(Nanos now, bool timeout) {
  if (timeout || has_passed(rtt_, halved_at_, now)) {
    halved_at_ = now;
    reduce(0.5);
    if (timeout) window_ = mtu_;
  }
  return output();
}

CcOutput Dctcp::restore() {
  window_ = std::max(window_, remembered_.window);
  slow_start_threshold_ = std::max(slow_start_threshold_, remembered_.slow_start_threshold);
  return output();
}

CcOutput Dctcp::on_idle(double initial_window_bytes) {
  slow_start_threshold_ = std::max(slow_start_threshold_, window_);
  window_ = std::min(window_, as_float(clamped(initial_window_bytes, mtu_, max_window_)));
  return output();
}

void Dctcp::reduce(double factor) {
  window_ = as_float(std::max<double>(window_ * factor, mtu_));
  slow_start_threshold_ = std::max(window_, 2 * mtu_);
}

}  // namespace warpline::message
