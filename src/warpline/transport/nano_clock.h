// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/time/clock.h"
#include "warpline/base/units.h"

namespace warpline::transport {

/// Nanoseconds since it was made, by the time-stamp counter: never steps back on one machine, costs no system call.
class NanoClock {
 public:
  /// The time since the clock was made; any thread may ask.
  [[nodiscard]] Nanos now() const {
    return Nanos{static_cast<std::int64_t>(static_cast<double>(ticks_now() - start_) * nanos_per_tick_)};
  }

 private:
  double nanos_per_tick_ = 1e9 / ticks_per_second();
  std::uint64_t start_ = ticks_now();
};

}  // namespace warpline::transport
