// SPDX-License-Identifier: Apache-2.0
#include "frame/bench_frame.h"

#include <utility>

#include "warpline/report/facts.h"
#include "warpline/runtime/setup_step.h"

namespace warpline {

Result<gpu::GpuFacts> look_for_gpu(std::uint16_t ordinal) {
  const runtime::SetupStep step(fmt::format("asking CUDA for GPU {}", ordinal));
  return gpu::find_gpu(ordinal);
}

void print_table_json(const config::LoadedConfig& loaded, nlohmann::ordered_json table, const gpu::GpuFacts* gpu) {
  nlohmann::ordered_json json = {
      {"schema_version", 1}, {"command", "bench"}, {"build", report::build_facts()}, {"host", report::host_facts()}};
  if (gpu != nullptr) {
    json["gpu"] = {{"name", gpu->name},
                   {"pci", gpu->pci},
                   {"memory_bytes", gpu->memory.value},
                   {"multiprocessors", gpu->multiprocessors}};
  }
  json["config"] = loaded.to_json();
  json["table"] = std::move(table);
  fmt::print("{}\n", json.dump(1));
}

}  // namespace warpline
