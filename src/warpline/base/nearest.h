// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace warpline {

/// The known name that differs from `name` by the fewest letters inserted, removed, changed or swapped with the next,
/// the first of equals; empty when none is known.
[[nodiscard]] std::string nearest(std::string_view name, std::span<const std::string> known);

}  // namespace warpline
