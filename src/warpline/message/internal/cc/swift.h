// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/message/cc_config.h"
#include "warpline/message/internal/cc/limits.h"
#include "warpline/message/internal/cc/sample.h"

namespace warpline::message {

/// Swift (Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020):
/// keeps the round trip near a target by additive increase and multiplicative decrease, once a round trip. The window
/// may fall below one packet; then packets are paced.
///
/// Beyond the paper: the gap between paced packets is drawn at random, with the mean that the paper gives. Many senders
/// with equal gaps fall into step (Floyd and Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", 1992):
/// the queue of all comes and goes within a millisecond, and the few flows that send while it is short grow beyond the
/// others.
///
/// Also beyond the paper: the window doubles in a round trip until the target is first reached or packets are lost; a
/// small share of losses is taken for corruption and left to what the delay says. A path that is longer than the target
/// shows by round trips that stay above it with the smallest window: the target is then raised beyond the least of
/// them, and the smallest window with it: the smallest rate stays what it was, so that waits for a processor, which no
/// sender can shorten, do not bring a flow to a halt. Not before: who took the shortest round trip for the path's
/// would, beginning while the queue is long, take the queue for the path and keep it long. When round trips are shorter
/// for a while, the target comes back.
class Swift {
 public:
  explicit Swift(const CcConfig& config);

  CcOutput on_ack(const CcSample& sample);
  CcOutput on_loss(Nanos now, bool timeout);
  void remember();
  CcOutput restore();
  CcOutput on_idle(double initial_window_bytes);
  [[nodiscard]] CcOutput output() const;

  /// Returns the target for the round trip minus the peer's delay, at the current window (section 3.5).
  [[nodiscard]] Nanos target() const;

 private:
  void follow(float& window, Nanos& decreased_at, double delay, double target, double acked_packets, Nanos now);
  void learn_path(double delay, double target);
  void unlearn_path(double delay, std::uint32_t acked_packets);
  void draw_gap(const CcSample& sample);
  static void multiply(float& window, Nanos& decreased_at, double factor, double least, Nanos now);
  [[nodiscard]] double smallest_window() const;
  [[nodiscard]] bool may_decrease(Nanos decreased_at, Nanos now) const;
  [[nodiscard]] double round_trip() const;
  [[nodiscard]] double target_delay() const;

  // Constants; times in nanoseconds. float: none of them means more than 24 bits.
  float mtu_;
  float given_target_;  ///< of the configuration
  float scaling_range_;
  float scaling_alpha_;
  float scaling_beta_;
  float endpoint_target_;
  float increment_;
  float decrease_;
  float max_decrease_;
  float min_window_;  ///< packets
  float max_window_;  ///< packets
  float tolerated_loss_;

  float base_target_;                  ///< given, or learned
  float least_delay_ = 0;              ///< of the last packets; 0: none yet
  float remembered_window_ = 0;        ///< packets
  float path_rtt_ = 0;                 ///< least round trip of those above the target with the smallest window
  float path_rtt_max_ = 0;             ///< the greatest of them
  std::uint16_t counted_packets_ = 0;  ///< of which least_delay_ is the least
  std::uint8_t above_target_ = 0;      ///< how many of these in a row
  float rtt_ = 0;                      ///< newest; 0: none yet
  float loss_ = 0;                     ///< share of packets lost, moving average
  std::uint32_t drawn_ = 1U << 31;     ///< the next gap between packets: 2^31 is the mean
  std::uint8_t timeouts_ = 0;          ///< since the last acknowledgement
  bool slow_start_ = true;
  bool remembered_slow_start_ = false;
  // The two windows of section 3.3, in packets, and when they were decreased last.
  float fabric_;
  float endpoint_;
  Nanos fabric_decreased_at_ = kLongAgo;
  Nanos endpoint_decreased_at_ = kLongAgo;
};

}  // namespace warpline::message
