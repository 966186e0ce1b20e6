// SPDX-License-Identifier: Apache-2.0
#include "transfers/chunk_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "config/table_rows.h"

namespace warpline::transfers {
namespace {

/// As the study that the table is beside: from 64 KiB to 64 MiB.
constexpr std::uint64_t kChunks[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
constexpr std::uint16_t kMtus[] = {1500, 9000};

Result<void> refuse_what_other_tables_have(const config::BenchConfig& bench) {
  const char* const option = !bench.rows.empty()      ? "--rows"
                             : !bench.batches.empty() ? "--batch"
                             : !bench.paths.empty()   ? "--path"
                             : !bench.only.empty()    ? "--only"
                             : !bench.ways.empty()    ? "--ways"
                             : bench.packets != 0     ? "--packets"
                                                      : nullptr;
  if (option == nullptr) return {};
  return usage_error(fmt::format("cannot use {}", option), "stream-chunk has chunks, MTUs and engines",
                     "use --chunk, --size, --processing, --engine, --ack, --io, --send-engine, --bytes or --seconds");
}

Result<std::vector<Processing>> processings_of(const config::BenchConfig& bench, std::string why) {
  const std::string all[] = {"on", "off"};
  WARPLINE_TRY(const auto asked, config::rows_of<std::string>("processing", all, bench.processing, std::move(why)));
  std::vector<Processing> processings;
  for (const std::string& one : asked) {
    if (one == "off") {
      processings.push_back(Processing::acknowledged);
    } else {
      processings.insert(processings.end(), {Processing::placed, Processing::verified});
    }
  }
  return processings;
}

}  // namespace

Transfer ChunkRow::transfer(const config::BenchConfig& bench) const {
  Transfer transfer;
  transfer.pairs = pipelines_of(bench);
  transfer.engine = engine;
  transfer.gpu = bench.gpu;
  transfer.ack = ack;
  transfer.io = io;
  transfer.send_engine = send_engine;
  transfer.connections = bench.parallel;
  transfer.mtu = mtu;
  transfer.chunk = chunk;
  transfer.bytes = bench.bytes / (transfer.pairs * transfer.connections);
  transfer.seconds = static_cast<double>(bench.seconds.value) / 1e9;
  transfer.place = processing != Processing::acknowledged;
  transfer.verify = processing == Processing::verified;
  transfer.seed = bench.seed;
  return transfer;
}

std::uint32_t pipelines_of(const config::BenchConfig& bench) { return std::max<std::uint32_t>(bench.pipelines, 1); }

Result<std::vector<ChunkRow>> plan_chunks(const config::BenchConfig& bench, std::span<const EngineKind> engines) {
  WARPLINE_CHECK(refuse_what_other_tables_have(bench));
  if (bench.send_engine == EngineKind::persistent || bench.send_engine == EngineKind::graph) {
    return usage_error(fmt::format("--send-engine: cannot use {}", name(bench.send_engine)),
                       "payload is put into frames by a launch for each burst", "use inline, thread or launch");
  }
  constexpr const char* kNoSuch = "stream-chunk has no such row";
  WARPLINE_TRY(const auto mtus, config::rows_of<std::uint16_t>("size", kMtus, bench.sizes, kNoSuch));
  WARPLINE_TRY(const auto chunks, config::rows_of<std::uint64_t>("chunk", kChunks, bench.chunks, kNoSuch));
  WARPLINE_TRY(const auto processings, processings_of(bench, kNoSuch));
  std::vector<ChunkRow> rows;
  for (const std::uint16_t mtu : mtus) {
    for (const Processing processing : processings) {
      for (const std::uint64_t chunk : chunks) {
        for (const EngineKind engine : engines) {
          const bool on_gpu = runs_on_gpu(engine);
          const ProcessorKind io = on_gpu ? bench.io : ProcessorKind::cpu;
          const ProcessorKind ack = on_gpu && io == ProcessorKind::cpu ? bench.ack : io;
          rows.push_back({engine, mtu, processing, chunk, ack, io});
        }
        if (bench.send_engine != EngineKind::inline_) {
          rows.push_back({.mtu = mtu, .processing = processing, .chunk = chunk, .send_engine = bench.send_engine});
        }
      }
    }
  }
  return rows;
}

}  // namespace warpline::transfers
