// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "warpline/base/random.h"

namespace warpline::rpc {

inline constexpr std::size_t kNoChoice = std::numeric_limits<std::size_t>::max();  ///< there was nothing to choose

/// Returns the less loaded one of two different, randomly drawn numbers below `count`, or kNoChoice if `count` is 0.
/// That keeps loads nearly as even as a look at all would, and, other than that, does not send everybody to the same
/// one (M. Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", IEEE TPDS 12(10), 2001).
///
/// `load(number)` returns what is compared; of equal ones the first one drawn is taken.
template <typename Load>
[[nodiscard]] std::size_t choose_of_two(std::size_t count, Random& random, const Load& load) {
  if (count < 2) return count == 0 ? kNoChoice : 0;
  const std::size_t one = random.below(count);
  std::size_t other = random.below(count - 1);
  other += other >= one ? 1 : 0;
  return load(other) < load(one) ? other : one;
}

}  // namespace warpline::rpc
