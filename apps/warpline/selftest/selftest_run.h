// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/child_run.h"
#include "selftest/kept.h"
#include "warpline/base/result.h"

namespace warpline::selftest {

/// What a self-test does to the world. All are called by the thread that runs it.
struct Hooks {
  /// Runs the program with these arguments, for so long at most.
  std::function<Result<bench::ChildRun>(const std::vector<std::string>& arguments, Nanos limit)> run;
  std::function<std::string()> no_gpu;  ///< returns why the GPU cannot be used; empty: it can
  std::function<bool()> stopped;        ///< whether somebody has asked for the end
  /// Is told each step as it is done, and how many are left, as far as that is known.
  std::function<void(const StepResult&, std::size_t left)> progress;
  std::function<Result<void>(const Kept&)> keep;  ///< keeps what was found, after each step
  std::function<double()> seconds;                ///< a clock
};

/// `run_selftest` does all steps of which `kept` has no result yet, and then has the best configuration, unless it was
/// stopped. Its results stay in the order of the plan.
[[nodiscard]] Result<void> run_selftest(Kept& kept, const Hooks& hooks);

/// Returns the result that says why nothing passes from one port to the other; null if it does.
[[nodiscard]] const StepResult* no_link(const Kept& kept);

/// Returns the exit code: 0 if nothing failed, 4 if something did, 3 if the ports could not be used at all, 5 if
/// nothing came from one to the other.
[[nodiscard]] int exit_code(const Kept& kept);

}  // namespace warpline::selftest
