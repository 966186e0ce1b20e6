// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace warpline {

/// Returns the first line, without newline, of a file such as those in /sys and /proc; empty if it cannot be read.
[[nodiscard]] inline std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace warpline
