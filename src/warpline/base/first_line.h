// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

/// Returns the number that such a file begins with; 0 if there is none.
[[nodiscard]] inline std::uint64_t number_in_file(const std::filesystem::path& path) {
  std::uint64_t number = 0;
  std::ifstream(path) >> number;
  return number;
}

}  // namespace warpline
