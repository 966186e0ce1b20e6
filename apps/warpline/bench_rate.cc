// SPDX-License-Identifier: Apache-2.0
// `warpline bench rate`: the highest rate without loss of a command, each trial a child that is this program.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "bench/child_run.h"
#include "commands.h"
#include "frame/bench_frame.h"
#include "rate/offered_command.h"
#include "rate/rate_run.h"
#include "rate/rate_search.h"
#include "warpline/base/output.h"
#include "warpline/runtime/stop.h"

namespace warpline {
namespace {

/// Options that other tables have.
Result<void> refuse_other_tables(const config::BenchConfig& bench) {
  const char* option = bench.rounds != 0      ? "--rounds"
                       : bench.pipelines != 0 ? "--pipelines"
                       : !bench.only.empty()  ? "--only"
                       : !bench.ways.empty()  ? "--ways"
                       : bench.packets != 0   ? "--packets"
                       : bench.keep_disturbed ? "--keep-disturbed"
                                              : nullptr;
  if (option == nullptr) return {};
  return usage_error(fmt::format("cannot use {}", option), "rate has trials of a command in --of",
                     "set what the command does in --of, and its trials by --final-trial-duration and --duration-sum");
}

std::vector<rate::SearchGoal> goals_of(const config::RateSearchSettings& settings) {
  std::vector<rate::SearchGoal> goals;
  for (const double loss_ratio : settings.loss_ratios) {
    goals.push_back({.loss_ratio = loss_ratio,
                     .exceed_ratio = settings.exceed_ratio,
                     .initial_trial_duration = std::min(settings.initial_trial_duration, settings.final_trial_duration),
                     .final_trial_duration = settings.final_trial_duration,
                     .duration_sum = settings.duration_sum,
                     .width = settings.width});
  }
  return goals;
}

std::vector<std::string> rate_notes(const rate::OfferedCommand& command) {
  std::vector<std::string> notes = {
      "each trial is a process of its own: no pauses before or after it but its start and its drain (RFC 2544, 23)",
      fmt::format("load that was offered {:.2g} % short of what was intended, or more, counts as lost",
                  100 * rate::kOfferedTolerance)};
  if (command.source() == rate::LoadSource::wire) {
    notes.emplace_back("frames that the wire supplied are counted, not looked at");
  }
  return notes;
}

}  // namespace

Result<int> run_bench_rate(const config::LoadedConfig& loaded) {
  const config::RateSearchSettings& settings = loaded.config.rate_search;
  WARPLINE_CHECK(refuse_other_tables(loaded.config.bench));
  WARPLINE_TRY(const rate::OfferedCommand command,
               rate::OfferedCommand::parse(settings.of, config::process_environment(), config::read_text_file));
  if (!loaded.config.bench.rows.empty() && !command.takes_size()) {
    return usage_error("cannot use --rows", "the size of frames is not for this command to set", "leave it out");
  }
  rate::RateTable table{.of = command.text(),
                        .source = command.source(),
                        .interfaces = command.interfaces(),
                        .goals = goals_of(settings),
                        .min_load = settings.min_rate,
                        .max_load = settings.max_rate,
                        .rows = {},
                        .notes = rate_notes(command)};
  std::vector<std::optional<std::uint16_t>> sizes(loaded.config.bench.rows.begin(), loaded.config.bench.rows.end());
  if (sizes.empty()) sizes.emplace_back();
  const runtime::StopOnSignal on_signal;
  const std::atomic<bool>& stop = runtime::StopOnSignal::requested();
  for (const std::optional<std::uint16_t> size : sizes) {
    WARPLINE_TRY(rate::RateSearch search, rate::RateSearch::create(table.goals, table.min_load, table.max_load));
    table.rows.push_back(rate::run_rate_search(
        std::move(search), command, size,
        [&](std::vector<std::string> arguments, Nanos limit) {
          if (!loaded.config.runtime.hugepages) arguments.emplace_back("--no-hugepages");
          return bench::run_child(bench::kThisProgram, arguments, limit, &stop);
        },
        stop, [](const std::string& line) { put_line(stderr, line); }));
    if (stop.load() || table.rows.back().failure) break;
  }
  print_table(loaded, table);
  if (stop.load()) return kInterrupted;
  if (table.rows.back().failure) return *table.rows.back().failure;
  return 0;
}

}  // namespace warpline
