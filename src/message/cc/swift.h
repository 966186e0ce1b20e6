// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "message/cc/sample.h"

namespace warpline {

/// Swift (Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020):
/// keeps the round trip near a target by additive increase and multiplicative decrease, once a round trip. The window
/// may fall below one packet; then packets are paced.
///
/// Beyond the paper: windows double a round trip until the target is first reached or a packet is lost; the target is
/// never below the smallest round trip seen and a quarter of the base target, for paths longer than it foresees; a
/// small share of losses while delays are below the target is taken for corruption, not congestion.
class Swift {
 public:
  explicit Swift(const CcConfig& config);

  CcOutput on_ack(const CcSample& sample);
  CcOutput on_loss(Nanos now, bool timeout);
  [[nodiscard]] CcOutput output() const;

  /// Of the round trip less the peer's delay, for the window as it is (section 3.5).
  [[nodiscard]] Nanos target() const;

 private:
  /// One of the two windows of section 3.3.
  struct Window {
    float packets;
    std::int64_t decreased_at;  ///< nanoseconds of the caller's clock
  };

  [[nodiscard]] bool may_decrease(const Window& window, Nanos now) const;
  void follow_delay(Window& window, double delay, double target, const CcSample& sample, bool grows);
  void decrease(Window& window, double factor, Nanos now);
  [[nodiscard]] double target_nanos() const;
  [[nodiscard]] double packets() const;

  // Constants. float: 24 bits are more than any of them means.
  float mtu_;
  float base_target_;
  float scaling_range_;
  float scaling_alpha_;
  float scaling_beta_;
  float endpoint_target_;
  float increment_;
  float decrease_;
  float max_decrease_;
  float min_window_;
  float max_window_;
  float tolerated_loss_;

  Window fabric_;
  Window endpoint_;
  float rtt_ = 0;              ///< smoothed, nanoseconds; 0: none yet
  float min_rtt_ = 0;          ///< without the peer's delay; 0: none yet
  float delay_ = 0;            ///< the newest round trip without the peer's delay
  float loss_ = 0;             ///< share of packets lost, moving average
  std::uint8_t timeouts_ = 0;  ///< since the last acknowledgement
  bool slow_start_ = true;
};

}  // namespace warpline
