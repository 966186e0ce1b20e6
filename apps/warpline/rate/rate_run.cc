// SPDX-License-Identifier: Apache-2.0
#include "rate/rate_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpline/base/units.h"

namespace warpline::rate {
namespace {

/// What a run may take in addition to its duration: DPDK, pools, CUDA's context, draining.
constexpr std::int64_t kStartNanos = 20'000'000'000;

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "it says nothing";
  const auto line_break = text.find_last_of('\n', end);
  const auto begin = line_break == std::string::npos ? 0 : line_break + 1;
  return text.substr(begin, end - begin + 1);
}

/// A run whose checker misses frames ends with 4 too: that is loss, and its report says so.
bool has_report(const bench::ChildRun& run) {
  return !run.timed_out && (run.code == 0 || run.code == static_cast<int>(ErrorKind::verification)) &&
         !run.output.empty();
}

Error failure_of(const bench::ChildRun& run, const std::vector<std::string>& arguments) {
  const std::string what = fmt::format("a trial failed: warpline {}", fmt::join(arguments, " "));
  if (run.timed_out) return environment_error(what, "it hung and was ended", "run it alone");
  const bool known =
      run.code >= static_cast<int>(ErrorKind::threshold) && run.code <= static_cast<int>(ErrorKind::peer);
  const std::string why = run.code > 128 ? fmt::format("signal {} ended it: {}", run.code - 128, last_line(run.errors))
                                         : fmt::format("exit code {}: {}", run.code, last_line(run.errors));
  return {known ? static_cast<ErrorKind>(run.code) : ErrorKind::environment, what, why, "run it alone"};
}

Result<TrialReport> make_trial(const OfferedCommand& command, const TrialInput& trial,
                               std::optional<std::uint16_t> size, const RunTrial& run, const std::atomic<bool>& stop) {
  const std::vector<std::string> arguments = command.arguments(trial, size);
  WARPLINE_TRY(const bench::ChildRun child, run(arguments, Nanos{kStartNanos + 4 * trial.duration.value}));
  if (stop.load(std::memory_order_relaxed) || !has_report(child)) return failure_of(child, arguments);
  auto report = read_trial_report(child.output, command.source(), trial.duration);
  if (report || report.error().kind != ErrorKind::verification) return report;
  Error error = report.error();
  error.what += fmt::format(": warpline {}", fmt::join(arguments, " "));
  return error;
}

}  // namespace

std::string goal_name(const SearchGoal& goal) {
  return goal.loss_ratio == 0 ? "NDR" : fmt::format("PDR {:.6g} %", 100 * goal.loss_ratio);
}

RateRow run_rate_search(RateSearch search, const OfferedCommand& command, std::optional<std::uint16_t> size,
                        const RunTrial& run, const std::atomic<bool>& stop, const TellProgress& progress) {
  RateRow row{.size = size, .results = {}, .trials = {}, .failure = {}};
  while (const std::optional<TrialInput> trial = search.next()) {
    if (stop.load(std::memory_order_relaxed)) break;
    Result<TrialReport> report = make_trial(command, *trial, size, run, stop);
    if (stop.load(std::memory_order_relaxed)) break;
    if (!report) {
      row.failure = report.error();
      break;
    }
    search.add(report->output(*trial, command.interfaces()));
    row.trials.push_back({search.trials().back(), *std::move(report)});
    progress(fmt::format("rate: trial {}: {}/s for {}: {:.4g} % lost", row.trials.size(), humanize(trial->load),
                         to_string(trial->duration), 100 * row.trials.back().result.output.loss_ratio()));
  }
  row.results = search.results();
  return row;
}

int RateTable::exit_code() const {
  for (const RateRow& row : rows) {
    if (row.failure) return static_cast<int>(row.failure->kind);
  }
  return 0;
}

}  // namespace warpline::rate
