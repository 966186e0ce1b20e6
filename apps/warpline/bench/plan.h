// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"

namespace warpline::bench {

/// One way of forwarding, as the arguments of `warpline forward`.
struct BenchCell {
  std::string column;
  bool on_gpu = false;
  std::vector<std::string> timed;     ///< on a wire that costs nothing
  std::vector<std::string> verified;  ///< the same between a generator and a checker of every byte
};

struct BenchRow {
  std::uint32_t size = 0;  ///< of frames, bytes without FCS
  std::uint16_t burst = 0;
  std::vector<BenchCell> cells;
  std::vector<std::optional<double>> published;  ///< l2fwd-nv's Gbit/s, in the order of BenchPlan::published
};

/// One of the published tables: what runs for each cell of it.
struct BenchPlan {
  std::string name;
  std::string title;
  std::uint16_t pipelines = 1;
  std::vector<std::string> columns;
  std::vector<std::string> published;  ///< columns of l2fwd-nv's figures
  std::string source;                  ///< of those
  std::vector<BenchRow> rows;
};

/// The table that `bench.name` names; without `with_gpu` only the columns that the CPU fills. `cpus`: how many
/// processors there are. A usage error when `bench.rows` names a row that the table has not.
[[nodiscard]] Result<BenchPlan> plan_bench(const config::BenchConfig& bench, unsigned cpus, bool with_gpu);

/// One line about each table: {name, what it shows}.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> list_benches();

}  // namespace warpline::bench
