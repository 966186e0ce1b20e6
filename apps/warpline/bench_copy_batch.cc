// SPDX-License-Identifier: Apache-2.0
// `warpline bench copy-batch`: what reaches the consumer by packet size and batch, each run a child that is this
// program.
#include <optional>
#include <string>
#include <vector>

#include "batches/copy_batch_table.h"
#include "bench/child_run.h"
#include "commands.h"
#include "frame/bench_frame.h"
#include "frame/run_frame.h"
#include "warpline/base/output.h"
#include "warpline/runtime/stop.h"

namespace warpline {
namespace {

/// Nanoseconds that a run may take in addition to its seconds: DPDK, memory, CUDA's context, draining.
constexpr std::int64_t kBesidesRunning = 20'000'000'000;

}  // namespace

Result<int> run_bench_copy_batch(const config::LoadedConfig& loaded) {
  const config::BenchConfig& bench = loaded.config.bench;
  const runtime::StopOnSignal on_signal;
  const std::atomic<bool>& stop = runtime::StopOnSignal::requested();
  const Result<gpu::GpuFacts> gpu = look_for_gpu(bench.gpu);
  if (!gpu && loaded.is_given("bench.gpu")) return gpu.error();
  std::optional<EngineKind> engine;
  if (loaded.is_given("bench.engine")) engine = bench.engine;
  WARPLINE_TRY(batches::CopyBatchPlan plan, batches::plan_copy_batch(bench, gpu.ok(), engine));
  const Nanos limit{kBesidesRunning + 4 * bench.seconds.value};
  batches::CopyBatchTable table = batches::run_copy_batch(
      std::move(plan), bench,
      [&](std::vector<std::string> arguments) -> Result<bench::ChildRun> {
        if (stop.load()) return environment_error("it was not run", "the table was interrupted");
        if (!loaded.config.runtime.hugepages) arguments.emplace_back("--no-hugepages");
        return bench::run_child(bench::kThisProgram, arguments, limit, &stop);
      },
      [](const std::string& line) { put_line(stderr, line); });
  if (!gpu) table.notes.push_back("the consumer ran on the CPU, in host memory: " + gpu.error().message());
  print_table(loaded, table, gpu ? &*gpu : nullptr);
  return stop.load() ? kInterrupted : table.exit_code();
}

}  // namespace warpline
