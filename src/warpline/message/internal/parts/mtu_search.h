// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/base/units.h"

namespace warpline::message {

/// How long datagrams may be on a path: searched with probes from a base that every path carries (DPLPMTUD, RFC 8899,
/// section 5). All sizes are bytes of UDP payload. First the largest is tried, since most paths carry it, then the
/// middle between what passed and what did not.
class MtuSearch {
 public:
  static constexpr std::uint32_t kMostTries = 3;    ///< MAX_PROBES
  static constexpr std::uint32_t kResolution = 16;  ///< less is not searched for

  MtuSearch() = default;
  /// From `base` up to `most`; a size that did not pass is tried again after `raise_time` (PMTU_RAISE_TIMER).
  MtuSearch(std::uint32_t base, std::uint32_t most, Nanos raise_time)
      : base_(std::min(base, most)), most_(most), bytes_(base_), failed_(most + 1), raise_time_(raise_time) {}

  /// What is known to pass.
  [[nodiscard]] std::uint32_t bytes() const { return bytes_; }

  /// How long the next probe should be, of a session with datagrams of up to `most`; 0: nothing is to be found out.
  [[nodiscard]] std::uint32_t next(std::uint32_t most, Nanos now) {
    if (failed_ <= most_ && now >= raise_at_) failed_ = most_ + 1;
    most = std::min(most, most_);
    if (bytes_ >= most) return 0;
    if (failed_ > most) return most;
    return failed_ - bytes_ <= kResolution ? 0 : bytes_ + (failed_ - bytes_) / 2;
  }
  /// A probe of this size has arrived. True: bytes() has grown.
  bool arrived(std::uint32_t bytes) {
    if (bytes <= bytes_) return false;
    bytes_ = bytes;
    if (failed_ <= bytes) failed_ = most_ + 1;
    tries_ = 0;
    return true;
  }
  /// A probe of this size has not.
  void lost(std::uint32_t bytes, Nanos now) {
    if (bytes <= bytes_ || bytes >= failed_ || ++tries_ < kMostTries) return;
    fail(bytes, now);
  }
  /// Packets of up to bytes() vanish, those of the base do not (section 4.3).
  void black_hole(Nanos now) {
    fail(bytes_, now);
    bytes_ = base_;
  }

 private:
  void fail(std::uint32_t bytes, Nanos now) {
    failed_ = std::min(failed_, bytes);
    tries_ = 0;
    raise_at_ = {now.value + raise_time_.value};
  }

  std::uint32_t base_ = 0;
  std::uint32_t most_ = 0;
  std::uint32_t bytes_ = 0;
  std::uint32_t failed_ = 0;  ///< the least that did not pass; above `most_`: none
  std::uint32_t tries_ = 0;   ///< of the next size
  Nanos raise_time_;
  Nanos raise_at_;  ///< what failed is tried again
};

}  // namespace warpline::message
