// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/base/units.h"

namespace warpline::stream {

/// Tells a lane that hangs from one that has nothing to do, or takes its time. One thread.
class LaneWatch {
 public:
  explicit LaneWatch(Nanos patience) : patience_(patience) {}

  /// Returns whether a burst waits, and none was taken, for as long as the patience. `oldest` is the sequence of the
  /// oldest burst that the lane has not taken, 0 if there is none. From one look to the next at most a part of the
  /// patience passes: whose process was stopped for a while finds its lane no further, and is to wait for it anew.
  [[nodiscard]] bool hangs(std::uint64_t oldest, Nanos now) {
    constexpr std::int64_t kLooks = 8;
    const std::int64_t passed = std::min(now.value - looked_.value, patience_.value / kLooks);
    waited_ = oldest == 0 || oldest != oldest_ ? 0 : waited_ + passed;
    oldest_ = oldest;
    looked_ = now;
    return waited_ >= patience_.value / kLooks * kLooks;
  }

 private:
  Nanos patience_;
  std::uint64_t oldest_ = 0;  ///< at the last look, as are the following
  std::int64_t waited_ = 0;   ///< ns
  Nanos looked_{};
};

}  // namespace warpline::stream
