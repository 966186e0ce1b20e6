// SPDX-License-Identifier: Apache-2.0
// `warpline bench stream-chunk`: one process, two ports of the software NIC, a sender and a receiver on an lcore each.
#include <cstdio>
#include <string>

#include "commands.h"
#include "frame/bench_frame.h"
#include "transfers/chunk_table.h"
#include "warpline/base/give_way.h"
#include "warpline/base/output.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/stop.h"

namespace warpline {

Result<int> run_bench_stream_chunk(const config::LoadedConfig& loaded) {
  const config::BenchConfig& bench = loaded.config.bench;
  WARPLINE_TRY(const std::vector<transfers::ChunkRow> rows, transfers::plan_chunks(bench));
  const runtime::StopOnSignal on_signal;
  const std::atomic<bool>& stop = runtime::StopOnSignal::requested();
  WARPLINE_TRY(const machine::Topology topology, machine::Topology::of_machine());
  WARPLINE_TRY(const runtime::LcorePlan lcores,
               runtime::plan_lcores(topology, transfers::transfer_workers(),
                                    {.lcores = 0, .share_cores = true, .real_time = is_real_time()}));
  for (const std::string& note : lcores.notes) put_line(stderr, note);
  WARPLINE_TRY(const runtime::Eal eal,
               runtime::Eal::start(loaded.config.runtime, lcores, {}, transfers::transfer_memory()));
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
