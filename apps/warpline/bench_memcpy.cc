// SPDX-License-Identifier: Apache-2.0
// `warpline bench memcpy`: copies between host and GPU memory, in this process.
#include <fmt/format.h>

#include <cstdio>

#include "commands.h"
#include "copies/copy_rig.h"
#include "copies/memcpy_table.h"
#include "frame/bench_frame.h"
#include "frame/run_frame.h"
#include "warpline/base/output.h"
#include "warpline/gpu/device.h"
#include "warpline/runtime/stop.h"

namespace warpline {
namespace {

constexpr std::uint16_t kMemcpyRounds = 9;  ///< where none are asked for

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
  WARPLINE_TRY(gpu::GpuFacts gpu, look_for_gpu(ordinal));
  WARPLINE_CHECK(gpu::use_gpu(ordinal));
  return gpu;
}

}  // namespace

Result<int> run_bench_memcpy(const config::LoadedConfig& loaded) {
  const config::BenchConfig& bench = loaded.config.bench;
  WARPLINE_CHECK(refuse_what_others_have(bench));
  const runtime::StopOnSignal on_signal;
  const Result<gpu::GpuFacts> gpu = take_gpu(bench.gpu);
  if (!gpu && loaded.is_given("bench.gpu")) return gpu.error();
  WARPLINE_TRY(copies::CopyRig rig, copies::CopyRig::create(copies::kLargestCopy, gpu.ok()));
  copies::MemcpyTable table = copies::run_memcpy_table(
      gpu.ok(), bench.rounds != 0 ? bench.rounds : kMemcpyRounds, bench.seed,
      [&](const copies::CopyCase& copies, std::size_t runs) { return rig.time(copies, runs); },
      runtime::StopOnSignal::requested());
  if (!gpu) table.notes.push_back("no column for a GPU: " + gpu.error().message());
  print_table(loaded, table, gpu ? &*gpu : nullptr);
  return runtime::StopOnSignal::signal() != 0 ? kInterrupted : table.exit_code();
}

}  // namespace warpline
