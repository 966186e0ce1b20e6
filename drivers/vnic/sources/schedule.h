// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "vnic/sources/supply_rate.h"

namespace warpline::vnic {

/// Frames that arrive by a SupplyRate at one queue of a static wire. Owner: whoever serves the queue.
class Schedule {
 public:
  /// A queue that is asked too rarely misses what is more frames late than this.
  static constexpr std::uint64_t kMaxBacklog = 1024;

  /// The first frames arrive once they are first asked for. A rate of 0: whatever is asked for is there.
  void start(const SupplyRate& rate) {
    rate_ = rate;
    begun_ = false;
    gone_ = 0;
    missed_ = 0;
  }
  [[nodiscard]] bool endless() const { return rate_.endless(); }

  /// Frames that have arrived and were not taken, `most` at most.
  [[nodiscard]] std::uint32_t arrived(std::uint32_t most, std::uint64_t now_nanos) {
    if (!begun_) [[unlikely]] {
      begun_ = true;
      start_nanos_ = now_nanos;
    }
    const auto all = static_cast<std::uint64_t>(rate_.frames_by(static_cast<double>(now_nanos - start_nanos_)));
    if (all <= gone_) return 0;
    if (all - gone_ > kMaxBacklog) [[unlikely]] {
      missed_ += all - kMaxBacklog - gone_;
      gone_ = all - kMaxBacklog;
    }
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(most, all - gone_));
  }
  void take(std::uint32_t frames) { gone_ += frames; }
  /// Frames missed since this was asked last.
  [[nodiscard]] std::uint64_t take_missed() { return std::exchange(missed_, 0); }

 private:
  SupplyRate rate_;
  std::uint64_t start_nanos_ = 0;
  std::uint64_t gone_ = 0;  ///< taken or missed
  std::uint64_t missed_ = 0;
  bool begun_ = false;
};

}  // namespace warpline::vnic
