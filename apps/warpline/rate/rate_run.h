// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/child_run.h"
#include "rate/offered_command.h"
#include "rate/rate_search.h"
#include "rate/trial_report.h"

namespace warpline::rate {

/// RateTrial is one trial of a search, as it was made.
struct RateTrial {
  TrialResult result;
  TrialReport report;
};

/// RateRow is one search: a row of the table.
struct RateRow {
  std::optional<std::uint16_t> size;  ///< of frames, bytes without FCS; unset: as the command has it
  std::vector<GoalResult> results;    ///< in the order of the goals
  std::vector<RateTrial> trials;      ///< in the order that they were made
  std::optional<Error> failure;       ///< what ended the search before its time
};

/// RateTable is what `bench rate` makes: a search for each frame size.
struct RateTable {
  std::string of;  ///< the command line
  LoadSource source = LoadSource::generator;
  std::uint32_t interfaces = 1;  ///< ports that are offered the load, each
  std::vector<SearchGoal> goals;
  double min_load = 0;
  double max_load = 0;
  std::vector<RateRow> rows;
  std::vector<std::string> notes;

  /// {name, title, of, unit, interfaces, goals, min_load, max_load, rows [{size, columns {GOAL: result}, trials []}],
  /// notes}.
  [[nodiscard]] nlohmann::ordered_json to_json() const;
  [[nodiscard]] std::string to_markdown() const;
  /// exit_code is 0, or the kind of the first failure.
  [[nodiscard]] int exit_code() const;
};

/// Returns a goal's name: NDR where no frame may be lost, else PDR and its loss ratio.
[[nodiscard]] std::string goal_name(const SearchGoal& goal);

/// RunTrial runs the program with these arguments until it ends, or for so long at most.
using RunTrial = std::function<Result<bench::ChildRun>(const std::vector<std::string>& arguments, Nanos limit)>;
/// TellProgress takes one line about how far things are.
using TellProgress = std::function<void(const std::string& line)>;

/// Makes the trials that `search` asks for, one after the other, each a run of `command`, until it ends, one fails, or
/// `stop` is set.
[[nodiscard]] RateRow run_rate_search(RateSearch search, const OfferedCommand& command,
                                      std::optional<std::uint16_t> size, const RunTrial& run,
                                      const std::atomic<bool>& stop, const TellProgress& progress);

}  // namespace warpline::rate
