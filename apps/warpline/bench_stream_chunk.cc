// SPDX-License-Identifier: Apache-2.0
// `warpline bench stream-chunk`: one process, pairs of ports of the software NIC, and of each a sender and a receiver
// on an lcore.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "commands.h"
#include "frame/bench_frame.h"
#include "frame/run_frame.h"
#include "transfers/chunk_table.h"
#include "warpline/base/give_way.h"
#include "warpline/base/output.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/stop.h"

namespace warpline {

Result<int> run_bench_stream_chunk(const config::LoadedConfig& loaded) {
  const config::BenchConfig& bench = loaded.config.bench;
  std::vector<EngineKind> engines = {EngineKind::inline_};
  if (loaded.is_given("bench.engine") && bench.engine != EngineKind::inline_) {
    if (bench.engine != EngineKind::launch && bench.engine != EngineKind::persistent) {
      return usage_error(fmt::format("--engine: cannot use {}", name(bench.engine)),
                         "stream-chunk has lanes on a GPU beside the CPU", "use launch or persistent");
    }
    if (bench.io == ProcessorKind::gpu && bench.engine != EngineKind::persistent) {
      return usage_error(fmt::format("cannot combine --io gpu with --engine {}", name(bench.engine)),
                         "packets are taken by what runs all the time", "use --engine persistent");
    }
    engines.push_back(bench.engine);
  } else if (bench.ack == ProcessorKind::gpu || bench.io == ProcessorKind::gpu) {
    return usage_error(fmt::format("cannot use --{} gpu", bench.io == ProcessorKind::gpu ? "io" : "ack"),
                       "the CPU is the only engine", "add --engine persistent or launch");
  }
  WARPLINE_TRY(const std::vector<transfers::ChunkRow> rows, transfers::plan_chunks(bench, engines));
  const runtime::StopOnSignal on_signal;
  const std::atomic<bool>& stop = runtime::StopOnSignal::requested();
  const std::uint32_t pairs = transfers::pipelines_of(bench);
  WARPLINE_TRY(const Bytes memory, transfers::transfer_memory(pairs, engines, bench.send_engine, bench.gpu));
  runtime::RuntimeSettings runtime = loaded.config.runtime;
  runtime.share_cores = true;
  WARPLINE_TRY(const runtime::Eal eal, runtime::Eal::start(runtime, transfers::transfer_workers(pairs), {}, memory));
  const runtime::LcorePlan& lcores = eal.plan();
  for (const std::string& note : lcores.notes) put_line(stderr, note);
  for (const std::string& note : eal.notes()) put_line(stderr, note);
  WARPLINE_TRY(transfers::ChunkTable table,
               transfers::run_chunk_table(
                   rows, bench,
                   [&](const transfers::Transfer& transfer) { return transfers::run_transfer(lcores, transfer, stop); },
                   stop, [](const std::string& line) { put_line(stderr, line); }));
  table.hugepages = eal.hugepages();
  print_table(loaded, table);
  return runtime::StopOnSignal::signal() != 0 ? kInterrupted : 0;
}

}  // namespace warpline
