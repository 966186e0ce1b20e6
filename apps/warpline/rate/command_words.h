// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "warpline/base/result.h"

namespace warpline::rate {

/// Splits a command line into words as a shell does: at blanks, with '...', "..." and backslashes, and nothing else: no
/// variables, no patterns. A usage error if a quote is not closed.
[[nodiscard]] Result<std::vector<std::string>> split_words(std::string_view text);

}  // namespace warpline::rate
