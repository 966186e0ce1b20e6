// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace warpline {

/// What takes no longer than this tells nothing of its progress.
constexpr std::chrono::seconds kQuietProgress{5};

/// ProgressOutput writes how far something is: on a terminal one line in its place, cut to the terminal's width,
/// elsewhere each time a line. One thread.
class ProgressOutput {
 public:
  explicit ProgressOutput(int file = STDERR_FILENO);

  /// Returns the time between two lines.
  [[nodiscard]] std::chrono::nanoseconds interval() const;
  void show(std::string line);
  /// Takes the line off the terminal, so that something else can be written there.
  void clear();
  [[nodiscard]] bool shown() const { return shown_; }  ///< true if there was a line

 private:
  int file_;
  std::size_t columns_;  ///< of the terminal; 0: it is none
  bool shown_ = false;
  bool on_terminal_ = false;  ///< a line stands there
};

/// ProgressLines tell how far something is that takes long, and how long the rest will take if it goes on so. One
/// thread.
class ProgressLines {
 public:
  using Clock = std::chrono::steady_clock;

  /// `what` is its name, `total` how many parts it has, of about the same length.
  ProgressLines(std::string what, std::uint64_t total, const ProgressOutput& output = ProgressOutput(),
                Clock::time_point now = Clock::now())
      : what_(std::move(what)), total_(total), output_(output), begun_(now), told_(now) {}
  ProgressLines(const ProgressLines&) = delete;
  ProgressLines& operator=(const ProgressLines&) = delete;
  ~ProgressLines() { clear(); }

  /// Another part is done.
  void step(Clock::time_point now = Clock::now());
  /// Says how many parts are left, where that is known better now.
  void expect(std::uint64_t left) { total_ = done_ + left; }
  /// Makes way for something else on the terminal.
  void clear() { output_.clear(); }

 private:
  std::string what_;
  std::uint64_t total_;
  ProgressOutput output_;
  std::uint64_t done_ = 0;
  Clock::time_point begun_;
  Clock::time_point told_;
};

/// Returns a line such as "memcpy: 3 of 10 MiB, 1 min 10 s left [######..............]".
[[nodiscard]] std::string progress_line(const std::string& what, std::uint64_t done, std::uint64_t total,
                                        std::chrono::duration<double> elapsed, std::string_view unit = "");

}  // namespace warpline
