// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string_view>

namespace warpline {

/// Writes a line to `file` at once. A reader that has left is no reason to end in the middle of a run, so nothing is
/// thrown: std::ferror(file) remembers.
inline void put_line(std::FILE* file, std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), file);
  std::fputc('\n', file);
  std::fflush(file);
}

}  // namespace warpline
