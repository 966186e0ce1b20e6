// SPDX-License-Identifier: Apache-2.0
// `warpline bench`: the published tables. DPDK starts once in a process, so each run is a child that is this program.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "bench/adaptive.h"
#include "bench/table.h"
#include "commands.h"
#include "frame/bench_frame.h"
#include "warpline/base/output.h"
#include "warpline/runtime/stop.h"

namespace warpline {
namespace {

using Json = nlohmann::ordered_json;

/// Nanoseconds that a run may take in addition to its seconds: DPDK, pools, CUDA's context, draining.
constexpr std::int64_t kStartNanos = 20'000'000'000;

int list(bool json) {
  if (!json) {
    for (const auto& [name, title] : bench::list_benches()) fmt::print("{:<16} {}\n", name, title);
    return 0;
  }
  Json benches = Json::array();
  for (const auto& [name, title] : bench::list_benches()) benches.push_back({{"name", name}, {"title", title}});
  fmt::print("{}\n", Json{{"schema_version", 1}, {"command", "bench"}, {"benches", benches}}.dump(2));
  return 0;
}

/// By its end signals have their default actions again, which end the children too.
Result<gpu::GpuFacts> gpu_of_table(std::uint16_t ordinal) {
  const runtime::StopOnSignal on_signal;
  return look_for_gpu(ordinal);
}

Result<int> make_table(const config::LoadedConfig& loaded) {
  const config::BenchConfig& bench = loaded.config.bench;
  const Result<gpu::GpuFacts> gpu = gpu_of_table(bench.gpu);
  if (runtime::StopOnSignal::requested().load()) return kInterrupted;
  WARPLINE_TRY(bench::BenchPlan plan, bench::plan_bench(bench, std::thread::hardware_concurrency(), gpu.ok()));
  const Nanos limit{kStartNanos + 4 * bench.seconds.value};
  bench::BenchTable table = bench::run_bench_plan(
      std::move(plan), bench,
      [&](std::vector<std::string> arguments) {
        if (!loaded.config.runtime.hugepages) arguments.emplace_back("--no-hugepages");
        return bench::run_child(bench::kThisProgram, arguments, limit);
      },
      [](const std::string& line) { put_line(stderr, line); });
  if (!gpu) table.notes.push_back("no column for a GPU: " + gpu.error().message());
  print_table(loaded, table, gpu ? &*gpu : nullptr);
  return table.exit_code();
}

Result<int> make_adaptive_table(const config::LoadedConfig& loaded) {
  const config::BenchConfig& bench = loaded.config.bench;
  const Nanos limit{kStartNanos + 4 * bench.seconds.value};
  WARPLINE_TRY(const bench::AdaptiveBenchTable table, bench::run_adaptive_bench(
                                                          bench,
                                                          [&](std::vector<std::string> arguments) {
                                                            if (!loaded.config.runtime.hugepages)
                                                              arguments.emplace_back("--no-hugepages");
                                                            return bench::run_child(bench::kThisProgram, arguments,
                                                                                    limit);
                                                          },
                                                          [](const std::string& line) { put_line(stderr, line); }));
  print_table(loaded, table);
  return table.exit_code();
}

}  // namespace

Result<int> run_bench(const config::LoadedConfig& loaded) {
  const config::BenchConfig& bench = loaded.config.bench;
  const bool chunks = bench.name == "stream-chunk";
  if (bench.name != "copy-batch" && !chunks && !(bench.sizes.empty() && bench.batches.empty() && bench.paths.empty())) {
    return usage_error("cannot use --size, --batch or --path",
                       fmt::format("bench {} does not receive in batches", bench.name),
                       "leave them out, or make bench copy-batch");
  }
  const bool of_chunks = !bench.chunks.empty() || !bench.processing.empty() || bench.bytes != 0;
  if (!chunks && (of_chunks || bench.ack == ProcessorKind::gpu)) {
    return usage_error("cannot use --chunk, --processing, --bytes or --ack",
                       fmt::format("bench {} sends no streams", bench.name),
                       "leave them out, or make bench stream-chunk");
  }
  if (loaded.config.bench.name == "list") return list(loaded.json);
  if (loaded.config.bench.name == "adaptive") return make_adaptive_table(loaded);
  if (loaded.config.bench.name == "copy-batch") return run_bench_copy_batch(loaded);
  if (loaded.config.bench.name == "memcpy") return run_bench_memcpy(loaded);
  if (loaded.config.bench.name == "rate") return run_bench_rate(loaded);
  if (loaded.config.bench.name == "recycle") return run_bench_recycle(loaded);
  if (chunks) return run_bench_stream_chunk(loaded);
  return make_table(loaded);
}

}  // namespace warpline
