// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/base/random.h"
#include "warpline/base/units.h"

namespace warpline::rpc {

/// Waits that double: between attempts of a call, or between looks at a server.
struct BackOff {
  Nanos first{};    ///< the first wait, more than 0
  Nanos longest{};  ///< no wait is longer; `first` at least
};

/// Returns the wait after failure number `failures`, from 0. It is drawn from the upper half of the doubled wait, so
/// that those that failed at once do not come back at once ("equal jitter": M. Brooker, "Exponential Backoff And
/// Jitter", AWS Architecture Blog, 2015).
[[nodiscard]] inline Nanos wait_after(const BackOff& settings, std::uint32_t failures, Random& random) {
  constexpr std::uint32_t kMostDoublings = 62;
  std::int64_t wait = settings.longest.value;
  if (failures <= kMostDoublings && settings.first.value <= settings.longest.value >> failures)
    wait = settings.first.value << failures;
  const std::int64_t half = wait / 2;
  return {wait - static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(half) + 1))};
}

}  // namespace warpline::rpc
