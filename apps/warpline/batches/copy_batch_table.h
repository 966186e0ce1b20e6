// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "batches/copy_batch_plan.h"
#include "bench/table.h"

namespace warpline::batches {

/// CopyBatchSamples is what the runs of one cell came to, one element a round.
struct CopyBatchSamples {
  std::vector<double> taken;        ///< share of the packets offered that the consumer got
  std::vector<double> mpps;         ///< that it got
  std::vector<double> wait_p50_us;  ///< of a batch's first packet until the batch closed
  std::vector<double> p50_us;       ///< from a batch closed until the consumer was seen done with it
  std::vector<double> p99_us;
  std::uint64_t memory_bytes = 0;  ///< of a GPU
  std::uint64_t checked = 0;       ///< packets whose bytes the consumer compared, all of them
  int code = 0;                    ///< exit code of the first run that failed; 0: none
  std::string failure;             ///< and why it did; empty: none
};

/// CopyBatchTable is a plan with its samples, in the order of rows and their cells.
struct CopyBatchTable {
  CopyBatchPlan plan;
  std::vector<std::vector<CopyBatchSamples>> samples;
  std::vector<std::string> notes;

  /// {name, title, rows [{size, batch, offered_mpps, columns {NAME: cell}, published {NAME: taken}}], source, notes}.
  [[nodiscard]] nlohmann::ordered_json to_json() const;
  [[nodiscard]] std::string to_markdown() const;
  [[nodiscard]] int exit_code() const { return bench::exit_code_of(samples); }
};

/// Runs each cell once a round, all of them in a random order that `bench.seed` decides; every packet is verified in
/// the run that is timed. A cell that fails is not run again.
[[nodiscard]] CopyBatchTable run_copy_batch(CopyBatchPlan plan, const config::BenchConfig& bench,
                                            const bench::RunForward& run, const bench::Progress& progress);

}  // namespace warpline::batches
