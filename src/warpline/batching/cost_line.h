// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

namespace warpline::batching {

/// CostLine is the estimate `fixed + per_packet * n` of the time that a batch of n packets takes: least squares over
/// the batches that it was told, each weighing 31/32 of the one after it. Times are in any unit, the same one
/// everywhere.
///
/// A batch of more than four times its estimate is taken for an accident (a descheduled thread) and counts as four
/// times, unless the batch before it was one too: then the engine has become slower. While all batches are of one size,
/// they cannot tell the two costs apart: the cost per packet stays what it was, and the fixed cost follows.
class CostLine {
 public:
  /// `packets` packets took `time`.
  void add(double packets, double time) {
    if (weight_ > kExperience && packets * weight_ <= 2 * packets_) {
      const double most = kAccident * at(packets);
      const bool accident = time > most;
      if (accident && !after_accident_) time = most;
      after_accident_ = accident;
    }
    weight_ = weight_ * kMemory + 1;
    packets_ = packets_ * kMemory + packets;
    time_ = time_ * kMemory + time;
    squares_ = squares_ * kMemory + packets * packets;
    products_ = products_ * kMemory + packets * time;

    const double mean_packets = packets_ / weight_;
    const double mean_time = time_ / weight_;
    const double variance = squares_ / weight_ - mean_packets * mean_packets;
    if (variance > kLeastSpread * mean_packets * mean_packets) {
      per_packet_ = (products_ / weight_ - mean_packets * mean_time) / variance;
    }
    per_packet_ = std::clamp(per_packet_, 0.0, mean_time / mean_packets);
    fixed_ = mean_time - per_packet_ * mean_packets;
  }

  [[nodiscard]] bool known() const { return weight_ > 0; }
  [[nodiscard]] double fixed() const { return fixed_; }
  [[nodiscard]] double per_packet() const { return per_packet_; }
  /// Returns the estimated time of a batch of `packets`; 0 before the first add().
  [[nodiscard]] double at(double packets) const { return fixed_ + per_packet_ * packets; }

 private:
  static constexpr double kMemory = 31.0 / 32;
  static constexpr double kAccident = 4;
  static constexpr double kExperience = 4;          ///< batches, about, before an accident can be told
  static constexpr double kLeastSpread = 1.0 / 64;  ///< variance of the sizes by the square of their mean

  double weight_ = 0;
  double packets_ = 0;
  double time_ = 0;
  double squares_ = 0;
  double products_ = 0;
  double fixed_ = 0;
  double per_packet_ = 0;
  bool after_accident_ = false;
};

}  // namespace warpline::batching
