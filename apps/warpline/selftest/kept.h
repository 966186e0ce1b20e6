// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "selftest/plan.h"
#include "selftest/step.h"
#include "selftest/tuning.h"
#include "warpline/base/result.h"

namespace warpline::selftest {

/// `Kept` is what a self-test found so far, as a file has it: a test that was ended goes on behind it.
struct Kept {
  Subject subject;                  ///< what is tested
  std::string version;              ///< of the program
  std::vector<StepResult> results;  ///< in the order of the plan
  std::optional<Best> best;         ///< set when all is done
  double seconds = 0;               ///< that it took, over all its parts

  /// Returns the result of a step, or null.
  [[nodiscard]] const StepResult* find(const std::string& step) const;
  /// Returns how many came out so.
  [[nodiscard]] std::size_t count(Outcome outcome) const;
};

/// Returns the file's text. `head` has members that stand at its head: build, host, date.
[[nodiscard]] Json kept_json(const Kept& kept, const Json& head);

/// Reads such a file. Nothing if it is none of a test of this subject by this version that was ended before its end.
[[nodiscard]] std::optional<Kept> unfinished(const std::string& text, const Subject& subject,
                                             const std::string& version);

/// Returns what to set or to mend, one line each, without repetition: what the machine lacks, and what runs noted.
[[nodiscard]] std::vector<std::string> advice(const Kept& kept);

/// Returns it for people: a line a step, of those that one cause has skipped one for all.
[[nodiscard]] std::string to_text(const Kept& kept);

}  // namespace warpline::selftest
