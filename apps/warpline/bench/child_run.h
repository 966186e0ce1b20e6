// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/units.h"

namespace warpline::bench {

/// kThisProgram is this program to itself: DPDK starts once in a process, so each run is a child.
inline constexpr const char* kThisProgram = "/proc/self/exe";

/// How a child process ended, and what it wrote.
struct ChildRun {
  int code = 0;  ///< its exit code; 128 + N: ended by signal N
  bool timed_out = false;
  std::string output;  ///< on stdout
  std::string errors;  ///< on stderr, its end only
};

/// Runs a program with this process's environment until it ends; kills it when it takes longer than `limit`. When
/// `stop` is set it is interrupted, and killed if it is still there half a second later. It starts with no signal
/// blocked. An environment error when it cannot be started.
[[nodiscard]] Result<ChildRun> run_child(const std::string& program, const std::vector<std::string>& arguments,
                                         Nanos limit, const std::atomic<bool>* stop = nullptr);

}  // namespace warpline::bench
