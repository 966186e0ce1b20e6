// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace warpline::attach {

/// A `Terminal` has the terminal of stdin and stdout for itself while it lives: a screen of its own, without a cursor,
/// and keys that are read at once and not shown. Puts all back at its end. One thread.
class Terminal {
 public:
  /// Returns true if stdin and stdout are terminals.
  [[nodiscard]] static bool is_there();

  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  struct Size {
    std::size_t width;   ///< columns
    std::size_t height;  ///< lines
  };
  /// Returns its size now; 80 x 24 if it does not say.
  [[nodiscard]] static Size size();

  /// Shows these lines, and nothing else.
  static void show(const std::vector<std::string>& lines);

  /// Returns the next key, if one comes within `patience`; 'q' when there will be none any more.
  [[nodiscard]] static std::optional<char> key(std::chrono::milliseconds patience);

 private:
  termios before_{};
};

}  // namespace warpline::attach
