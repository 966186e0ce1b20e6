// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstdio>
#include <string_view>

namespace warpline {

/// The errno of the first flush_output() of stdout that failed; 0: none did. The control thread writes and reads it.
inline int stdout_error = 0;

/// Flushes `file`. std::ferror(file) remembers a failure, and of stdout its reason is kept.
inline void flush_output(std::FILE* file) {
  if (std::fflush(file) != 0 && file == stdout && stdout_error == 0) stdout_error = errno;
}

/// Writes a line to `file` at once. A reader that has left is no reason to end in the middle of a run, so nothing is
/// thrown: std::ferror(file) remembers.
inline void put_line(std::FILE* file, std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), file);
  std::fputc('\n', file);
  flush_output(file);
}

}  // namespace warpline
