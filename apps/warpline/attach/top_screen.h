// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "attach/top_table.h"

namespace warpline::attach {

/// What stands above and below the table of `top`.
struct TopHead {
  std::string process;  ///< "forward edge, pid 1234"
  std::string every;    ///< "every 1 s"
  SortBy sort = SortBy::name;
  bool paused = false;
};

/// Returns the last `most` of these values as bars, U+2581 to U+2588, of which the highest is the largest value there.
[[nodiscard]] std::string sparkline(const std::vector<double>& values, std::size_t most);

/// Returns a number in eight columns at most: "14.881M".
[[nodiscard]] std::string short_number(double value);

/// Returns the screen, a line each of `width` columns at most, `height` at most; the last says what the keys do.
[[nodiscard]] std::vector<std::string> draw(const TopHead& head, const std::vector<TopRow>& rows, std::size_t width,
                                            std::size_t height);

}  // namespace warpline::attach
