// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
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

}  // namespace warpline
