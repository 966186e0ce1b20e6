// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/message/cc_config.h"
#include "warpline/message/internal/cc/sample.h"

namespace warpline::message {

/// TIMELY (Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, algorithm 1 and
/// section 4.3): a rate that follows the gradient of the round trip, with the parameters of eRPC (Kalia et al., NSDI
/// 2019, section 5.2). It starts at the link's rate, at which nothing is paced. Losses do not concern it.
///
/// The paper counts completions of segments of many packets. Here each acknowledgement changes the rate in proportion
/// to the time since the last one, by one completion's worth in a round trip.
class Timely {
 public:
  explicit Timely(const CcConfig& config);

  CcOutput on_ack(const CcSample& sample);
  CcOutput on_loss(Nanos, bool) { return output(); }
  void remember() {}
  CcOutput restore() { return output(); }
  CcOutput on_idle(double) { return output(); }
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
  float previous_rtt_ = 0;         ///< 0: none yet
  float min_rtt_ = 0;              ///< 0: none yet
  float difference_ = 0;           ///< of successive round trips, moving average
  float falling_completions_ = 0;  ///< in a row with a gradient of 0 or below
  Nanos updated_at_;
};

}  // namespace warpline::message
