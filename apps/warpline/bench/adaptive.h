// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/table.h"
#include "warpline/base/result.h"

namespace warpline::bench {

/// One way of batching at one load, with what its runs came to, one element a round.
struct AdaptiveBenchCell {
  std::string name;              ///< "adaptive", "again" (the same once more, as a control), or a number of packets
  std::string burst;             ///< as --burst takes it
  std::vector<double> mpps{};    ///< forwarded
  std::vector<double> p99_us{};  ///< of packets, from being sent until they are back at the sender
  std::vector<double> lost{};    ///< share of the packets sent
  std::string failure{};         ///< of the first run that failed; empty: none
  int code = 0;                  ///< its exit code
};

struct AdaptiveBenchRow {
  std::uint16_t load = 0;  ///< percent of the capacity
  std::vector<AdaptiveBenchCell> cells;

  /// Returns the adaptive batch by the best fixed one: medians of the throughput, and of the 99th percentile by the
  /// least of those that have 95 % of the best throughput. Both are 0 if a cell has no samples.
  struct Ratios {
    double throughput = 0;
    double p99 = 0;
  };
  [[nodiscard]] Ratios ratios(const std::string& name) const;
  /// Whether the adaptive batch has 95 % of the best throughput at 1.5 times the best 99th percentile.
  [[nodiscard]] bool met() const;
};

/// `bench adaptive`: the adaptive batch beside fixed ones, between a generator and a checker of every byte.
struct AdaptiveBenchTable {
  std::string engine;
  std::uint16_t pipelines = 1;
  double capacity_mpps = 0;  ///< of the fixed batch that carries most, its median
  std::vector<AdaptiveBenchRow> rows{};

  [[nodiscard]] nlohmann::ordered_json to_json() const;
  [[nodiscard]] std::string to_markdown() const;
  /// Returns the program's exit code: 0, or that of the first run that failed.
  [[nodiscard]] int exit_code() const;
};

/// Finds the capacity, then runs each way at each load once a round, all in random order. A usage error when `bench`
/// has options that this table has not, or a row that is no percentage; else the error of a run that failed at full
/// rate.
[[nodiscard]] Result<AdaptiveBenchTable> run_adaptive_bench(const config::BenchConfig& bench, const RunForward& run,
                                                            const Progress& progress);

}  // namespace warpline::bench
