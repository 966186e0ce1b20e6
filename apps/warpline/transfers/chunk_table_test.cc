// SPDX-License-Identifier: Apache-2.0
#include "transfers/chunk_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

namespace warpline::transfers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr EngineKind kCpu[] = {EngineKind::inline_};

config::BenchConfig chunks_asked(std::vector<std::uint64_t> chunks, std::vector<std::uint16_t> mtus) {
  config::BenchConfig bench;
  bench.name = "stream-chunk";
  bench.chunks = std::move(chunks);
  bench.sizes = std::move(mtus);
  bench.rounds = 3;
  return bench;
}

/// Figures of one transfer that sent so many chunks of so many bytes, the whole in a second.
TransferFigures figures_of(std::uint64_t chunks, std::uint64_t bytes) {
  TransferFigures figures;
  figures.bytes = chunks * bytes;
  figures.sending_s = 1;
  figures.chunks.count = chunks;
  figures.chunks.p50 = 2'000;
  figures.chunks.p99 = 3'000;
  figures.chunks.p999 = 4'000;
  return figures;
}

Result<ChunkTable> table_of(const config::BenchConfig& bench, std::uint64_t chunks) {
  const std::atomic<bool> stop{false};
  return run_chunk_table(
      *plan_chunks(bench, kCpu), bench,
      [&](const Transfer& transfer) -> Result<TransferFigures> { return figures_of(chunks, transfer.chunk); }, stop,
      [](const std::string&) {});
}

TEST(StreamChunk, HasAllFramesProcessingsAndChunksUnlessAskedForLess) {
  const auto all = plan_chunks(chunks_asked({}, {}), kCpu);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size(), 2U * 3 * 6);
  const auto few = plan_chunks(chunks_asked({1 << 20}, {9000}), kCpu);
  ASSERT_TRUE(few.ok());
  ASSERT_EQ(few->size(), 3U);
  EXPECT_EQ((*few)[0].processing, Processing::placed);
  EXPECT_EQ((*few)[1].processing, Processing::verified);
  EXPECT_EQ((*few)[2].processing, Processing::acknowledged);
  config::BenchConfig bench = chunks_asked({1 << 20}, {9000});
  bench.bytes = 8 << 20;
  bench.seed = 7;
  bench.pipelines = 2;
  bench.parallel = 4;
  const Transfer transfer = (*few)[1].transfer(bench);
  EXPECT_EQ(transfer.mtu, 9000);
  EXPECT_EQ(transfer.chunk, 1U << 20);
  EXPECT_EQ(transfer.pairs, 2U);
  EXPECT_EQ(transfer.connections, 4U);
  EXPECT_EQ(transfer.bytes, 1U << 20);  // of each connection
  EXPECT_TRUE(transfer.verify);
  EXPECT_TRUE(transfer.place);
  EXPECT_EQ(transfer.seed, 7U);
  EXPECT_FALSE((*few)[0].transfer(bench).verify);
  EXPECT_FALSE((*few)[2].transfer(bench).place);
  EXPECT_FALSE((*few)[2].transfer(bench).verify);
}

TEST(StreamChunk, HasRowsWithProcessingOrWithout) {
  const auto processings = [](std::vector<std::string> asked) {
    config::BenchConfig bench = chunks_asked({1 << 20}, {9000});
    bench.processing = std::move(asked);
    std::vector<Processing> found;
    const auto rows = plan_chunks(bench, kCpu);
    for (const ChunkRow& row : *rows) found.push_back(row.processing);
    return found;
  };
  EXPECT_THAT(processings({"on"}), ElementsAre(Processing::placed, Processing::verified));
  EXPECT_THAT(processings({"off"}), ElementsAre(Processing::acknowledged));
  EXPECT_THAT(processings({"off", "on"}),
              ElementsAre(Processing::acknowledged, Processing::placed, Processing::verified));
}

TEST(StreamChunk, RefusesWhatItHasNot) {
  EXPECT_EQ(plan_chunks(chunks_asked({100}, {}), kCpu).error().kind, ErrorKind::usage);
  EXPECT_THAT(plan_chunks(chunks_asked({}, {1400}), kCpu).error().message(), HasSubstr("there are 1500, 9000"));
  config::BenchConfig others = chunks_asked({}, {});
  others.rows = {64};
  EXPECT_THAT(plan_chunks(others, kCpu).error().message(), HasSubstr("--rows"));
  others = chunks_asked({}, {});
  others.processing = {"no"};
  EXPECT_THAT(plan_chunks(others, kCpu).error().message(), HasSubstr("there are on, off"));
  others = chunks_asked({}, {});
  others.packets = 5;
  EXPECT_THAT(plan_chunks(others, kCpu).error().message(), HasSubstr("--packets"));
}

TEST(StreamChunk, MeasuresEveryRowOnceARound) {
  const auto table = table_of(chunks_asked({}, {}), 5000);
  ASSERT_TRUE(table.ok());
  for (const ChunkSamples& samples : table->samples) EXPECT_EQ(samples.rounds.size(), 3U);
  const auto json = table->to_json();
  ASSERT_EQ(json["rows"].size(), 36U);
  const auto& row = json["rows"][0];
  EXPECT_EQ(row["mtu"], 1500);
  EXPECT_EQ(row["processing"], "placed");
  const auto& cell = row["columns"]["cpu"];
  EXPECT_DOUBLE_EQ(cell["goodput_gbps"]["median"], 8e-9 * 5000 * (64 << 10));
  EXPECT_DOUBLE_EQ(cell["chunk_p999_us"]["median"], 4);
  EXPECT_EQ(cell["verified_bytes"], 0);
  EXPECT_EQ(json["rows"][6]["columns"]["cpu"]["verified_bytes"], 3ULL * 5000 * (64 << 10));
  EXPECT_EQ(json["rows"][12]["processing"], "acknowledged");
  EXPECT_EQ(json["rows"][12]["columns"]["cpu"]["verified_bytes"], 0);
  EXPECT_EQ(row["published_gbps"]["processing"], 55);
}

TEST(StreamChunk, EnginesStandBesideEachOther) {
  constexpr EngineKind kBoth[] = {EngineKind::inline_, EngineKind::persistent};
  const config::BenchConfig bench = chunks_asked({1 << 20}, {1500});
  const std::atomic<bool> stop{false};
  const auto table = run_chunk_table(
      *plan_chunks(bench, kBoth), bench,
      [](const Transfer& transfer) -> Result<TransferFigures> {
        return figures_of(transfer.engine == EngineKind::inline_ ? 1000 : 3000, transfer.chunk);
      },
      stop, [](const std::string&) {});
  ASSERT_TRUE(table.ok());
  const auto rows = table->to_json()["rows"];
  ASSERT_EQ(rows.size(), 3U);
  const auto& columns = rows[1]["columns"];
  EXPECT_DOUBLE_EQ(columns["persistent"]["goodput_gbps"]["median"],
                   3 * columns["cpu"]["goodput_gbps"]["median"].get<double>());
  EXPECT_THAT(table->to_markdown(), HasSubstr("| 1500 | placed | 1 MiB | persistent |"));
  EXPECT_EQ(columns["persistent"]["multiprocessors"], 1);
  EXPECT_FALSE(columns["cpu"].contains("multiprocessors"));
}

TEST(StreamChunk, TellsWhoAcknowledges) {
  constexpr EngineKind kBoth[] = {EngineKind::inline_, EngineKind::launch};
  config::BenchConfig bench = chunks_asked({1 << 20}, {1500});
  bench.ack = ProcessorKind::gpu;
  const std::atomic<bool> stop{false};
  const auto table = run_chunk_table(
      *plan_chunks(bench, kBoth), bench,
      [](const Transfer& transfer) -> Result<TransferFigures> {
        TransferFigures figures = figures_of(1000, transfer.chunk);
        figures.lane_acknowledgements = transfer.ack == ProcessorKind::gpu ? 500 : 0;
        return figures;
      },
      stop, [](const std::string&) {});
  ASSERT_TRUE(table.ok());
  const auto columns = table->to_json()["rows"][0]["columns"];
  EXPECT_EQ(columns["launch --ack gpu"]["engine_acknowledgements"], 3 * 500);
  EXPECT_FALSE(columns["cpu"].contains("engine_acknowledgements"));
}

TEST(StreamChunk, TellsWhoTakesPackets) {
  constexpr EngineKind kBoth[] = {EngineKind::inline_, EngineKind::persistent};
  config::BenchConfig bench = chunks_asked({1 << 20}, {1500});
  bench.io = ProcessorKind::gpu;
  const std::atomic<bool> stop{false};
  std::uint64_t by_queues = 0;
  const auto table = run_chunk_table(
      *plan_chunks(bench, kBoth), bench,
      [&](const Transfer& transfer) -> Result<TransferFigures> {
        EXPECT_EQ(transfer.ack, transfer.io) << "who takes packets acknowledges";
        by_queues += transfer.io == ProcessorKind::gpu ? 1 : 0;
        return figures_of(1000, transfer.chunk);
      },
      stop, [](const std::string&) {});
  ASSERT_TRUE(table.ok());
  EXPECT_GT(by_queues, 0U);
  const auto columns = table->to_json()["rows"][0]["columns"];
  EXPECT_TRUE(columns.contains("persistent --io gpu"));
  EXPECT_TRUE(columns.contains("cpu"));
}

TEST(StreamChunk, TellsWhatPutsPayloadIntoFrames) {
  config::BenchConfig bench = chunks_asked({1 << 20}, {1500});
  bench.send_engine = EngineKind::launch;
  const std::atomic<bool> stop{false};
  std::uint64_t launched = 0;
  const auto table = run_chunk_table(
      *plan_chunks(bench, kCpu), bench,
      [&](const Transfer& transfer) -> Result<TransferFigures> {
        EXPECT_EQ(transfer.engine, EngineKind::inline_);
        launched += transfer.send_engine == EngineKind::launch ? 1 : 0;
        return figures_of(1000, transfer.chunk);
      },
      stop, [](const std::string&) {});
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(launched, 3U * 3);  // each processing, each round
  const auto columns = table->to_json()["rows"][0]["columns"];
  EXPECT_TRUE(columns.contains("cpu --send-engine launch"));
  EXPECT_TRUE(columns.contains("cpu"));
  bench.send_engine = EngineKind::persistent;
  EXPECT_THAT(plan_chunks(bench, kCpu).error().message(), HasSubstr("inline, thread or launch"));
}

TEST(StreamChunk, NamesAQuantileOnlyOfEnoughChunks) {
  const auto cell = [](std::uint64_t chunks) {
    return table_of(chunks_asked({64 << 20}, {1500}), chunks)->to_json()["rows"][0]["columns"]["cpu"];
  };
  EXPECT_FALSE(cell(99).contains("chunk_p99_us"));
  EXPECT_TRUE(cell(100).contains("chunk_p99_us"));
  EXPECT_FALSE(cell(999).contains("chunk_p999_us"));
  EXPECT_TRUE(cell(1000).contains("chunk_p999_us"));
  EXPECT_TRUE(cell(1).contains("chunk_p50_us"));
}

TEST(StreamChunk, IsATableForPeople) {
  const std::string text = table_of(chunks_asked({1 << 20}, {1500}), 2000)->to_markdown();
  EXPECT_THAT(text, HasSubstr("| 1500 | verified | 1 MiB | cpu | 16.8 [16.8, 16.8] | 2 | 3 | 4 | 0 |"));
  EXPECT_THAT(text, HasSubstr("Published: 55 Gb/s"));
}

TEST(StreamChunk, EndsWithTheFirstErrorAndWhenItIsStopped) {
  const config::BenchConfig bench = chunks_asked({1 << 20}, {1500});
  std::atomic<bool> stop{false};
  const auto failed = run_chunk_table(
      *plan_chunks(bench, kCpu), bench,
      [](const Transfer&) -> Result<TransferFigures> {
        return Error{ErrorKind::verification, "a byte is wrong", "", ""};
      },
      stop, [](const std::string&) {});
  EXPECT_EQ(failed.error().kind, ErrorKind::verification);
  const auto stopped = run_chunk_table(
      *plan_chunks(bench, kCpu), bench,
      [&](const Transfer& transfer) -> Result<TransferFigures> {
        stop = transfer.verify;
        return figures_of(1, transfer.chunk);
      },
      stop, [](const std::string&) {});
  ASSERT_TRUE(stopped.ok());
  EXPECT_THAT(stopped->samples[1].rounds, ElementsAre());
  EXPECT_THAT(stopped->to_markdown(), Not(HasSubstr("verified |")));
}

}  // namespace
}  // namespace warpline::transfers
