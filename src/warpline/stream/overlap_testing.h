// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace warpline::stream::testing {

/// Every way in which `segments` ranges can lie to each other: their ends in every order, equal ones among them. Calls
/// visit(begins and ends) for each, and returns how many there are.
template <typename Visit>
std::size_t for_each_overlap(std::uint32_t segments, const Visit& visit) {
  const std::uint32_t points = 2 * segments;
  std::vector<std::uint32_t> at(points, 0);
  std::size_t visited = 0;
  while (true) {
    const std::uint32_t most = *std::ranges::max_element(at);
    bool counts = true;
    for (std::uint32_t i = 0; i < segments; ++i) counts = counts && at[2 * i] < at[2 * i + 1];
    for (std::uint32_t value = 0; value < most; ++value) counts = counts && std::ranges::find(at, value) != at.end();
    if (counts) {
      visit(at);
      ++visited;
    }
    std::uint32_t digit = 0;
    while (digit < points && ++at[digit] == points) at[digit++] = 0;
    if (digit == points) return visited;
  }
}

}  // namespace warpline::stream::testing
