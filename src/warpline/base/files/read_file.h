// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace warpline {

/// A file's bytes, or why there are none.
struct FileText {
  std::string text{};  ///< empty if it cannot be read
  int problem = 0;     ///< errno; 0: it was read
};

/// Reads a whole file, at most `most` bytes of it. Errors of open(2) and read(2) are reported alike: streams with
/// istreambuf_iterator throw at the one and hide the other.
[[nodiscard]] FileText read_file(const std::filesystem::path& path, std::size_t most = SIZE_MAX);

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
