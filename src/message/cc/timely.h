// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "message/cc/sample.h"

namespace warpline {

/// TIMELY (Mittal et al., SIGCOMM 2015, algorithm 1 and section 5.1): a rate that follows the gradient of the round
/// trip. As eRPC uses it (Kalia et al., NSDI 2019, section 5.2): started at the link's rate, which is not paced while
/// round trips are short. An acknowledgement adjusts the rate in proportion to the time since the last one, a round
/// trip's worth at most, since the paper counts completions of whole segments.
class Timely {
 public:
  explicit Timely(const CcConfig& config);

  CcOutput on_ack(const CcSample& sample);
  CcOutput on_loss(Nanos now, bool timeout);
  [[nodiscard]] CcOutput output() const;

  /// Bytes a second.
  [[nodiscard]] double rate() const { return rate_; }

 private:
  // Constants: nanoseconds, bytes, bytes a second.
  float mtu_;
  float max_window_;
  float min_rate_;
  float max_rate_;
  float increment_;
  float alpha_;
  float beta_;
  float low_;
  float high_;

  float rate_;
  float previous_rtt_ = 0;  ///< 0: none yet
  float min_rtt_ = 0;       ///< 0: none yet
  float difference_ = 0;    ///< of successive round trips, moving average
  Nanos updated_at_;
  std::uint8_t negative_gradients_ = 0;
};

}  // namespace warpline
