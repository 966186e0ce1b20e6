// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>

#include <nlohmann/json.hpp>

#include "config/load.h"
#include "warpline/base/result.h"
#include "warpline/gpu/device.h"

namespace warpline {

// What the benchmarks that make a table have in common. The control thread calls all of it.

/// `look_for_gpu` asks CUDA for a GPU, a step of set-up that is named if it takes long.
[[nodiscard]] Result<gpu::GpuFacts> look_for_gpu(std::uint16_t ordinal);

/// `print_table_json` prints a table with what it was made by and on; `gpu` may be null.
void print_table_json(const config::LoadedConfig& loaded, nlohmann::ordered_json table, const gpu::GpuFacts* gpu);

/// `print_table` prints a table as text, or as JSON where that was asked for.
template <typename Table>
void print_table(const config::LoadedConfig& loaded, const Table& table, const gpu::GpuFacts* gpu = nullptr) {
  if (loaded.json) {
    print_table_json(loaded, table.to_json(), gpu);
  } else {
    fmt::print("{}", table.to_markdown());
  }
}

}  // namespace warpline
