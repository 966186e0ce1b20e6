// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace warpline::page {

/// True if `names`, a list of texts, has `name`.
template <typename Names>
[[nodiscard]] bool is_among(std::string_view name, const Names& names) {
  return std::ranges::find(names, name) != std::end(names);
}

/// True for keys that say nothing about what they hold, because it has names of its own: they get no heading.
[[nodiscard]] inline bool says_nothing(std::string_view key) {
  constexpr std::string_view kContainers[] = {"steps", "figures", "figure",   "setups",  "comparisons", "runs",
                                              "rows",  "table",   "verdicts", "verdict", "cells"};
  return is_among(key, kContainers);
}

}  // namespace warpline::page
