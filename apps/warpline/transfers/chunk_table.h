// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "transfers/chunk_plan.h"
#include "transfers/transfer.h"

namespace warpline::transfers {

/// `ChunkSamples` is what a row came to, one element a round.
struct ChunkSamples {
  ChunkRow row;
  std::vector<TransferFigures> rounds;
};

/// `ChunkTable` is what `bench stream-chunk` prints.
struct ChunkTable {
  std::vector<ChunkSamples> samples;
  std::uint32_t pairs = 1;        ///< of ports
  std::uint32_t connections = 1;  ///< of each pair
  bool hugepages = false;

  [[nodiscard]] nlohmann::ordered_json to_json() const;
  [[nodiscard]] std::string to_markdown() const;
};

/// Makes each row's transfer once a round, all rows in random order, by `run`, until `stop` is set: what was complete
/// by then stands in the table. The first error of `run` ends it.
[[nodiscard]] Result<ChunkTable> run_chunk_table(const std::vector<ChunkRow>& rows, const config::BenchConfig& bench,
                                                 const std::function<Result<TransferFigures>(const Transfer&)>& run,
                                                 const std::atomic<bool>& stop,
                                                 const std::function<void(const std::string&)>& progress);

}  // namespace warpline::transfers
