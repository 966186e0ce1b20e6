// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "selftest/plan.h"
#include "selftest/step.h"

namespace warpline::selftest {

/// A choice of options of `forward`: the option's section and key, as in a file, and its value.
struct Choice {
  std::string section;
  std::string key;
  std::string value;

  [[nodiscard]] std::string flag() const { return "--" + key; }
  bool operator==(const Choice&) const = default;
};
/// What differs from the defaults.
using Configuration = std::vector<Choice>;

/// `Alternative` is a configuration's possible change, and the step that showed that it works.
struct Alternative {
  Configuration changes;
  std::string shown_by;
};

/// Returns what is worth trying for a higher rate, of that which the results say works.
[[nodiscard]] std::vector<Alternative> alternatives(const Subject& subject, const std::vector<StepResult>& results);

/// Returns `base` with the changes: a key that both have takes the value of the changes.
[[nodiscard]] Configuration changed(Configuration base, const Configuration& changes);

/// Returns a configuration's name: "defaults", or its flags.
[[nodiscard]] std::string name_of(const Configuration& configuration);

/// Returns the step that searches for the highest rate without loss of a configuration, with frames of 64 bytes or
/// those that are named.
[[nodiscard]] Step rate_step(const Subject& subject, const Configuration& configuration, const std::string& size = "");

/// Returns what a result of such a step found, frames a second, and nothing if it found none.
[[nodiscard]] std::optional<double> rate_of(const StepResult& result);

/// Returns the rate that the JSON of `bench rate` tells, in frames a second.
[[nodiscard]] std::optional<double> rate_in(const Json& table);

/// `Best` is the fastest configuration that was found.
struct Best {
  Configuration configuration;
  double rate = 0;  ///< frames a second, each verified; 0: none was found
};

/// Tries the alternatives one after the other, keeping each that is faster by more than what a search is exact to.
/// `search` does a step, or returns nothing to end.
[[nodiscard]] Best find_best(const Subject& subject, const std::vector<Alternative>& tried,
                             const std::function<std::optional<StepResult>(const Step&)>& search);

/// Returns the steps that measure the best configuration further: its rate with longer frames, and its latency.
[[nodiscard]] std::vector<Step> steps_at_the_best(const Subject& subject, const Best& best);

/// Returns a file for --config: these ports with this configuration.
[[nodiscard]] std::string to_toml(const Subject& subject, const Best& best);

}  // namespace warpline::selftest
