// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warpline/base/result.h"

namespace warpline::config {

/// Refuses the first of `wanted`, which `--option` asked a table of `bench` for, that is none of `all`. The usage error
/// says `why` and names what there is.
template <std::ranges::range All, std::ranges::range Wanted>
[[nodiscard]] Result<void> refuse_unknown(std::string_view option, const All& all, const Wanted& wanted,
                                          std::string why) {
  for (const auto& one : wanted) {
    if (std::ranges::find(all, one) != std::ranges::end(all)) continue;
    return usage_error(fmt::format("--{}: cannot use {}", option, one), std::move(why),
                       fmt::format("there are {}", fmt::join(all, ", ")));
  }
  return {};
}

/// Returns `wanted`, or `all` if nothing is asked for. Errors: as refuse_unknown().
template <typename T>
[[nodiscard]] Result<std::vector<T>> rows_of(std::string_view option, std::span<const T> all,
                                             const std::vector<T>& wanted, std::string why) {
  WARPLINE_CHECK(refuse_unknown(option, all, wanted, std::move(why)));
  return wanted.empty() ? std::vector<T>(all.begin(), all.end()) : wanted;
}

}  // namespace warpline::config
