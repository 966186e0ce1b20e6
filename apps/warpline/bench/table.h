// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/child_run.h"
#include "bench/plan.h"

namespace warpline::bench {

/// What the runs of one cell came to, one element a round.
struct BenchSamples {
  std::vector<double> mpps;
  std::vector<double> gbps;  ///< Gbit/s of frames with FCS
  std::vector<double> loss;  ///< lost / (received + missed)
  std::vector<double> p50_us;
  std::vector<double> p99_us;  ///< from a batch closed to its work seen done
  std::optional<std::uint64_t> gpu_memory;
  std::optional<std::uint64_t> checked;  ///< packets verified before anything was timed
  int code = 0;                          ///< exit code of the first run that failed; 0: none
  std::string failure;                   ///< and why it did; empty: none

  [[nodiscard]] bool failed() const { return !failure.empty(); }
};

/// Returns the program's exit code for cells whose `code` is that of their first run that failed: 0, or that of the
/// first that failed, wrong bytes before all else.
template <typename Samples>
[[nodiscard]] int exit_code_of(const std::vector<std::vector<Samples>>& samples) {
  int code = 0;
  for (const auto& row : samples) {
    for (const Samples& cell : row) {
      if (cell.code == static_cast<int>(ErrorKind::verification)) return cell.code;
      if (code == 0) code = cell.code;
    }
  }
  return code;
}

/// A plan with its samples, in the order of rows and their cells.
struct BenchTable {
  BenchPlan plan;
  std::vector<std::vector<BenchSamples>> samples;
  std::vector<std::string> notes;

  /// {name, title, unit, pipelines, rows [{size, burst, columns {NAME: cell}, published {NAME: gbps}}], source, notes}.
  [[nodiscard]] nlohmann::ordered_json to_json() const;
  [[nodiscard]] std::string to_markdown() const;
  [[nodiscard]] int exit_code() const { return exit_code_of(samples); }
};

/// Runs `warpline` with these arguments.
using RunForward = std::function<Result<ChildRun>(const std::vector<std::string>& arguments)>;
/// One line about how far things are.
using Progress = std::function<void(const std::string& line)>;

/// Verifies each cell once, then times each once a round, all of them in random order. A cell that fails is not run
/// again, and says why.
[[nodiscard]] BenchTable run_bench_plan(BenchPlan plan, const config::BenchConfig& bench, const RunForward& run,
                                        const Progress& progress);

}  // namespace warpline::bench
