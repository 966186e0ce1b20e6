// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace warpline::traffic {

/// How long nothing has happened while somebody looked. Of the time between two looks at most `longest_gap` counts: who
/// was off its processor, or stopped with its whole process, cannot say that nothing would have come. In ticks.
class QuietTime {
 public:
  QuietTime(std::uint64_t longest_gap, std::uint64_t now) : longest_gap_(longest_gap), looked_(now) {}

  /// Something happened.
  void restart(std::uint64_t now) {
    quiet_ = 0;
    looked_ = now;
  }
  /// Nothing did, up to now. Returns for how long.
  std::uint64_t look(std::uint64_t now) {
    quiet_ += std::min(now - looked_, longest_gap_);
    looked_ = now;
    return quiet_;
  }

 private:
  std::uint64_t longest_gap_;
  std::uint64_t looked_;
  std::uint64_t quiet_ = 0;
};

}  // namespace warpline::traffic
