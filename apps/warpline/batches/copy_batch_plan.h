// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "warpline/base/result.h"

namespace warpline::batches {

/// CopyBatchCell is one way of receiving in one row.
struct CopyBatchCell {
  std::string column;                  ///< "copy, persistent"
  std::vector<std::string> arguments;  ///< of `warpline`
};

/// CopyBatchRow is what all ways are compared at.
struct CopyBatchRow {
  std::uint32_t size = 0;   ///< of frames, bytes
  std::string batch;        ///< packets, or "adaptive"
  double offered_mpps = 0;  ///< what 10 GbE carries of frames of that size
  std::vector<CopyBatchCell> cells;
  std::optional<double> launch;   ///< share of what was offered that the study's loop with launches received
  std::optional<double> polling;  ///< the same of the loop that it calls polling, a kernel launched again and again
};

/// CopyBatchPlan is what `bench copy-batch` runs.
struct CopyBatchPlan {
  std::vector<std::string> columns;
  std::vector<CopyBatchRow> rows;
};

/// Returns the table that `bench` asks for; without `with_gpu`, of engines on the CPU. `engine`: the only one; unset:
/// all that there are. A usage error names what no row or column has.
[[nodiscard]] Result<CopyBatchPlan> plan_copy_batch(const config::BenchConfig& bench, bool with_gpu,
                                                    std::optional<EngineKind> engine);

}  // namespace warpline::batches
