// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "warpline/base/result.h"

namespace warpline::runtime {

/// Returns the build id of the program (ld --build-id) in hexadecimal, which finds its debug symbols; empty: it has
/// none.
[[nodiscard]] std::string build_id();

/// While it lives, a crash of the process (SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL) in any thread writes a file: what
/// was given as its head, the signal, the stack of the thread, and the last counters. Then the signal takes its course.
/// A thread whose stack has overflowed writes none. The file is open from the beginning, so that it can be written
/// whatever the process has given up, and is gone after an end in order. One at a time; the control thread makes all
/// calls.
class CrashReport {
 public:
  /// Takes `path`, which no other process has taken; a report of an earlier crash that is there becomes `path`.1.
  /// `head` is text of whole lines. Usage error: it is taken, or no name of a file. Environment error: it cannot be
  /// written.
  [[nodiscard]] static Result<std::unique_ptr<CrashReport>> open(const std::string& path, std::string head);
  CrashReport(const CrashReport&) = delete;
  CrashReport& operator=(const CrashReport&) = delete;
  ~CrashReport();

  /// Has `text`, of whole lines, stand in the report as the last counters.
  void note_counters(std::string text);

 private:
  CrashReport(std::string path, int file, std::string head);

  std::string path_;
  int file_;
  std::string head_;
  std::array<std::string, 2> counters_;  ///< the one in use, and the one that is written next
  std::size_t next_ = 0;
};

}  // namespace warpline::runtime
