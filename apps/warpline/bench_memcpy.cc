// SPDX-License-Identifier: Apache-2.0
// `warpline bench memcpy`: copies between host and GPU memory, in this process.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "commands.h"
#include "copies/copy_rig.h"
#include "copies/memcpy_table.h"
#include "warpline/base/output.h"
#include "warpline/gpu/device.h"
#include "warpline/report/facts.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/runtime/stop.h"

namespace warpline {
namespace {

constexpr std::uint16_t kMemcpyRounds = 9;  ///< where none are asked for

bool asks_for_gpu(const config::LoadedConfig& loaded) {
  const auto gpu = std::ranges::find(loaded.settings, "bench.gpu", &config::Setting::name);
  return gpu != loaded.settings.end() && gpu->origin.source != config::Source::built_in;
}

Result<void> refuse_what_others_have(const config::BenchConfig& bench) {
  const char* option = !bench.rows.empty()    ? "--rows"
                       : bench.pipelines != 0 ? "--pipelines"
                       : !bench.only.empty()  ? "--only"
                       : !bench.ways.empty()  ? "--ways"
                       : bench.packets != 0   ? "--packets"
                                              : nullptr;
  if (option == nullptr) return {};
  return usage_error(fmt::format("cannot use {}", option), "memcpy copies bytes, and all sizes in each round",
                     "use --rounds for a shorter run");
}

Result<gpu::GpuFacts> take_gpu(std::uint16_t ordinal) {
  const runtime::SetupStep step(fmt::format("asking CUDA for GPU {}", ordinal));
  WARPLINE_TRY(gpu::GpuFacts gpu, gpu::find_gpu(ordinal));
  WARPLINE_CHECK(gpu::use_gpu(ordinal));
  return gpu;
}

}  // namespace

Result<int> run_bench_memcpy(const config::LoadedConfig& loaded) {
  const config::BenchConfig& bench = loaded.config.bench;
  WARPLINE_CHECK(refuse_what_others_have(bench));
  const runtime::StopOnSignal on_signal;
  const Result<gpu::GpuFacts> gpu = take_gpu(bench.gpu);
  if (!gpu && asks_for_gpu(loaded)) return gpu.error();
  WARPLINE_TRY(copies::CopyRig rig, copies::CopyRig::create(copies::kLargestCopy, gpu.ok()));
  copies::MemcpyTable table = copies::run_memcpy_table(
      gpu.ok(), bench.rounds != 0 ? bench.rounds : kMemcpyRounds, bench.seed,
      [&](const copies::CopyCase& copies, std::size_t runs) { return rig.time(copies, runs); },
      runtime::StopOnSignal::requested(), [](const std::string& line) { put_line(stderr, line); });
  if (!gpu) table.notes.push_back("no column for a GPU: " + gpu.error().message());
  if (loaded.json) {
    nlohmann::ordered_json json = {
        {"schema_version", 1}, {"command", "bench"}, {"build", report::build_facts()}, {"host", report::host_facts()}};
    if (gpu) json["gpu"] = {{"name", gpu->name}, {"pci", gpu->pci}, {"memory_bytes", gpu->memory.value}};
    json["config"] = loaded.to_json();
    json["table"] = table.to_json();
    fmt::print("{}\n", json.dump(1));
  } else {
    fmt::print("{}", table.to_markdown());
  }
  return runtime::StopOnSignal::signal() != 0 ? kInterrupted : table.exit_code();
}

}  // namespace warpline
