// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/random.h"

namespace warpline::sim {

/// True with the probability `p`.
inline bool chance(Random& random, double p) { return p > 0 && static_cast<double>(random.next() >> 11) * 0x1p-53 < p; }

/// Uniform in [low, high].
inline std::int64_t between(Random& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low) + 1));
}

}  // namespace warpline::sim
