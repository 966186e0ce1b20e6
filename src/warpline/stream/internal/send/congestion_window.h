// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/units.h"
#include "warpline/stream/sender_settings.h"

namespace warpline::stream {

/// How many bytes of a connection may be on their way. CUBIC (RFC 9438): slow start of RFC 5681 from ten segments (RFC
/// 6928), fast convergence, the region of Reno; without HyStart and without undoing. Or a fixed number. A value
/// without pointers or clock; at least one segment, at most the limit.
class CongestionWindow {
 public:
  CongestionWindow() = default;
  /// Segments are of `segment` bytes; `limit` is the largest window, and the one that is fixed.
  CongestionWindow(CongestionKind kind, std::uint32_t segment, std::uint64_t limit);

  [[nodiscard]] std::uint64_t bytes() const { return static_cast<std::uint64_t>(window_); }
  [[nodiscard]] bool in_slow_start() const { return window_ < threshold_; }

  /// Enters that so many bytes arrived, outside of recovery, while the window was what kept the sender from more.
  void on_acknowledged(std::uint64_t bytes, Nanos now, Nanos round_trip);
  /// Enters that the SYN or its answer was sent again: the window is one segment (RFC 5681, 3.1).
  void on_lost_syn();
  /// Enters a loss, once a recovery.
  void on_loss();
  /// Enters a timeout; `first` of its segment, not another one of the same.
  void on_timeout(bool first);
  /// Enters that nothing was sent for longer than a timeout (RFC 5681, 4.1).
  void on_idle();

 private:
  void reduce();
  void avoid_congestion(double bytes, Nanos now, Nanos round_trip);
  [[nodiscard]] double initial() const { return 10.0 * segment_; }
  void set(double window);

  // Bytes; seconds.
  double window_ = 0;
  double threshold_ = 0;
  double limit_ = 0;
  double segment_ = 1;
  double largest_ = 0;          ///< W_max: the window before the last reduction
  double before_ = 0;           ///< cwnd_prior: likewise, without fast convergence
  double at_begin_ = 0;         ///< cwnd_epoch
  double time_to_largest_ = 0;  ///< K
  double reno_ = 0;             ///< W_est
  std::int64_t begin_ = 0;      ///< ns: when congestion avoidance began; 0: it has not
  bool fixed_ = false;
};

}  // namespace warpline::stream
