// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "message/cc/sample.h"

namespace warpline {

/// DCTCP (RFC 8257, section 3.3): a window reduced in proportion to the share of bytes that switches marked; slow start
/// and additive increase as RFC 5681, section 3.1.
class Dctcp {
 public:
  explicit Dctcp(const CcConfig& config);

  CcOutput on_ack(const CcSample& sample);
  CcOutput on_loss(Nanos now, bool timeout);
  [[nodiscard]] CcOutput output() const;

  /// Estimated share of marked bytes, 0 to 1.
  [[nodiscard]] double alpha() const { return alpha_; }

 private:
  void reduce(double factor, Nanos now);

  // Constants and windows in bytes.
  float mtu_;
  float max_window_;
  float gain_;

  float window_;
  float slow_start_threshold_;
  float alpha_ = 1;  ///< RFC 8257, section 4.2: 1 until the first window has been observed
  float observed_bytes_ = 0;
  float marked_bytes_ = 0;
  float observation_end_ = 0;  ///< acknowledged bytes that complete the observation window
  float rtt_ = 0;              ///< newest, nanoseconds; 0: none yet
  Nanos reduced_at_;
  bool reduced_ = false;  ///< reduced_at_ means something
};

}  // namespace warpline
