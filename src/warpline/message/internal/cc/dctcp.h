// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/message/cc_config.h"
#include "warpline/message/internal/cc/sample.h"

namespace warpline::message {

/// DCTCP (RFC 8257, section 3.3): a window reduced in proportion to the share of bytes that switches marked; slow start
/// and additive increase as in RFC 5681, section 3.1. A window never falls below one packet.
class Dctcp {
 public:
  explicit Dctcp(const CcConfig& config);

  CcOutput on_ack(const CcSample& sample);
  CcOutput on_loss(Nanos now, bool timeout);
  void remember() { remembered_ = {window_, slow_start_threshold_}; }
  CcOutput restore();
  CcOutput on_idle(double initial_window_bytes);
  [[nodiscard]] CcOutput output() const { return {window_, Nanos{0}}; }

  /// Estimated share of marked bytes, 0 to 1.
  [[nodiscard]] double alpha() const { return alpha_; }

 private:
  void reduce(double factor);
  void end_observation(double in_flight_bytes);

  // Bytes, nanoseconds.
  float mtu_;
  float max_window_;
  float gain_;

  float window_;
  float slow_start_threshold_;
  struct {
    float window = 0;
    float slow_start_threshold = 0;
  } remembered_;
  float alpha_ = 1;           ///< section 4.2: 1 until a window has been observed
  float observed_bytes_ = 0;  ///< acknowledged in this observation window
  float marked_bytes_ = 0;
  float observation_window_ = 0;  ///< bytes that complete it: those in flight at its begin
  float rtt_ = 0;                 ///< smoothed; 0: none yet
  Nanos halved_at_;
};

}  // namespace warpline::message
