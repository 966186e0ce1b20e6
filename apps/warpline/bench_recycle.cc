// SPDX-License-Identifier: Apache-2.0
// `warpline bench recycle`: one process, one lcore, ports made anew for each measurement.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include "bench/recycle.h"
#include "bench/recycle_rig.h"
#include "commands.h"
#include "frame/bench_frame.h"
#include "warpline/base/give_way.h"
#include "warpline/base/output.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/stop.h"
#include "warpline/runtime/workers.h"

namespace warpline {
namespace {

constexpr auto kLookForStop = std::chrono::milliseconds(20);

Result<void> refuse_others(const config::BenchConfig& bench) {
  const char* option = !bench.rows.empty() ? "--rows" : bench.pipelines != 0 ? "--pipelines" : nullptr;
  if (option == nullptr) return {};
  return usage_error(fmt::format("cannot use {}", option), "recycle has factors in its rows, and one lcore",
                     "use --only FACTOR");
}

Result<int> make_recycle_table(const config::LoadedConfig& loaded) {
  const config::BenchConfig& bench = loaded.config.bench;
  WARPLINE_CHECK(refuse_others(bench));
  WARPLINE_TRY(bench::RecycleBenchPlan plan, bench::plan_recycle_bench(bench.only, bench.ways));
  const runtime::StopOnSignal on_signal;
  WARPLINE_TRY(const runtime::Eal eal,
               runtime::Eal::start(loaded.config.runtime, {{.name = "bench", .queues = "all queues"}}, {},
                                   bench::recycle_rig_memory()));
  for (const std::string& note : eal.notes()) put_line(stderr, note);
  std::optional<Result<bench::RecycleBenchTable>> table;
  {
    runtime::Workers workers(eal.plan());
    WARPLINE_CHECK(workers.launch(0, [&] {
      table.emplace(bench::run_recycle_bench(std::move(plan), bench::RecycleBenchSize::of(bench),
                                             runtime::StopOnSignal::requested(),
                                             [](const std::string& line) { put_line(stderr, line); }));
    }));
    while (workers.running()) std::this_thread::sleep_for(kLookForStop);
  }
  if (!table->ok()) return table->error();
  bench::RecycleBenchTable& made = **table;
  made.hugepages = eal.hugepages();
  print_table(loaded, made);
  return runtime::StopOnSignal::signal() != 0 ? kInterrupted : made.exit_code();
}

}  // namespace

Result<int> run_bench_recycle(const config::LoadedConfig& loaded) { return make_recycle_table(loaded); }

}  // namespace warpline
