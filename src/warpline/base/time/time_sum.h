// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "warpline/base/units.h"

namespace warpline {

/// Returns `time + wait`; beyond the ends of the type, the end. So "never" after any time is never, and a deadline that
/// lies too far in the future does not become one in the past.
[[nodiscard]] constexpr Nanos time_sum(Nanos time, Nanos wait) {
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  if (wait.value == kEnd) return wait;  // also after a negative time
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(time.value, wait.value, &sum)) return Nanos{sum};
  return Nanos{wait.value < 0 ? std::numeric_limits<std::int64_t>::min() : kEnd};
}

}  // namespace warpline
