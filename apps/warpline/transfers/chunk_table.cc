// SPDX-License-Identifier: Apache-2.0
#include "transfers/chunk_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "warpline/base/random.h"
#include "warpline/base/time/progress_lines.h"

namespace warpline::transfers {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint16_t kRounds = 5;  ///< where none are asked for
constexpr const char* kTitle = "TCP streams sent in chunks of which each is acknowledged before the next";
/// The sheet of lightning-kit's figures, which this table is laid out as.
constexpr const char* kPublishedBy =
    "Fixstars, High-Performance Networking Series 1 (2024): lightning-kit, one connection, 128 GB, MTU 8000, "
    "ConnectX-6 "
    "Dx, RTX A6000; the best of its chunks, with and without processing. Its Gbps are of 2^30 bits as it counts them, "
    "at the sender, with headers; it sends nothing again and keeps no order of segments that were lost";
constexpr double kPublishedWith = 55;     ///< Gb/s, the payloads put together on the GPU
constexpr double kPublishedWithout = 75;  ///< Gb/s, received and acknowledged alone

/// One in so many chunks is what a quantile needs.
constexpr std::uint64_t kLeastFor99 = 100;
constexpr std::uint64_t kLeastFor999 = 1000;

double gbps(const TransferFigures& figures) {
  return figures.sending_s > 0 ? 8e-9 * static_cast<double>(figures.bytes) / figures.sending_s : 0;
}

/// Returns {median, least, most, samples}.
Json statistic(std::vector<double> values) {
  Json json = {{"samples", values}};
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  json["median"] = values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  json["min"] = values.front();
  json["max"] = values.back();
  return json;
}

template <typename F>
Json statistic_of(const std::vector<TransferFigures>& rounds, F&& figure) {
  std::vector<double> values;
  for (const TransferFigures& one : rounds) values.push_back(figure(one));
  return statistic(std::move(values));
}

std::uint64_t least_chunks(const ChunkSamples& samples) {
  return std::ranges::min_element(samples.rounds, {}, [](const auto& one) { return one.chunks.count; })->chunks.count;
}

/// `lanes`: of a GPU that takes segments, each one CTA.
Json cell_json(const ChunkSamples& samples, std::uint32_t lanes) {
  const auto micros = [&](std::uint64_t LatencyTotals::* quantile) {
    return statistic_of(samples.rounds,
                        [&](const TransferFigures& one) { return static_cast<double>(one.chunks.*quantile) / 1e3; });
  };
  const std::uint64_t chunks = least_chunks(samples);
  std::uint64_t bytes = 0, again = 0, acknowledgements = 0;
  for (const TransferFigures& one : samples.rounds) {
    bytes += one.bytes;
    again += one.retransmitted;
    acknowledgements += one.lane_acknowledgements;
  }
  Json json = {{"goodput_gbps", statistic_of(samples.rounds, gbps)}};
  if (chunks != 0) json["chunk_p50_us"] = micros(&LatencyTotals::p50);
  if (chunks >= kLeastFor99) json["chunk_p99_us"] = micros(&LatencyTotals::p99);
  if (chunks >= kLeastFor999) json["chunk_p999_us"] = micros(&LatencyTotals::p999);
  json["chunks_a_round"] = chunks;
  json["bytes"] = bytes;
  json["verified_bytes"] = samples.row.processing == Processing::verified ? bytes : 0;
  json["segments_again"] = again;
  if (samples.row.ack == ProcessorKind::gpu) json["engine_acknowledgements"] = acknowledgements;
  if (runs_on_gpu(samples.row.engine)) json["multiprocessors"] = lanes;
  return json;
}

std::string size_text(std::uint64_t bytes) {
  return bytes >= 1 << 20 ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} KiB", bytes >> 10);
}

/// Columns are named by what takes segments, or by what sends them where that is no core.
std::string column_of(const ChunkRow& row) {
  if (row.send_engine != EngineKind::inline_) return fmt::format("cpu --send-engine {}", name(row.send_engine));
  if (row.engine == EngineKind::inline_) return "cpu";
  const char* const more = row.io == ProcessorKind::gpu    ? " --io gpu"
                           : row.ack == ProcessorKind::gpu ? " --ack gpu"
                                                           : "";
  return std::string(name(row.engine)) + more;
}

std::string latency_text(const Json& cell, const char* quantile) {
  const auto found = cell.find(quantile);
  return found == cell.end() ? "" : fmt::format("{:.0f}", found->at("median").get<double>());
}

}  // namespace

Json ChunkTable::to_json() const {
  Json json = {{"name", "stream-chunk"}, {"title", kTitle},
               {"pairs", pairs},         {"connections_a_pair", connections},
               {"hugepages", hugepages}, {"published_by", kPublishedBy}};
  Json rows = Json::array();
  const ChunkRow* before = nullptr;
  for (const ChunkSamples& one : samples) {
    if (one.rounds.empty()) continue;
    if (before == nullptr || !before->beside(one.row)) {
      rows.push_back({{"mtu", one.row.mtu},
                      {"processing", name(one.row.processing)},
                      {"chunk", one.row.chunk},
                      {"columns", Json::object()},
                      {"published_gbps", {{"processing", kPublishedWith}, {"no processing", kPublishedWithout}}}});
    }
    before = &one.row;
    rows.back()["columns"][column_of(one.row)] = cell_json(one, pairs);
  }
  json["rows"] = std::move(rows);
  return json;
}

std::string ChunkTable::to_markdown() const {
  std::string text = fmt::format(
      "{}; between {} of the software NIC, one core of each sends and one receives, {} connections a pair; {}.\n\n"
      "| MTU | bytes are | chunk | by | goodput, Gb/s | chunk p50, us | p99 | p99.9 | SMs |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
      kTitle, pairs == 1 ? std::string("two ports") : fmt::format("{} pairs of ports", pairs), connections,
      hugepages ? "hugepages" : "ordinary pages");
  for (const ChunkSamples& one : samples) {
    if (one.rounds.empty()) continue;
    const Json cell = cell_json(one, pairs);
    const Json& goodput = cell.at("goodput_gbps");
    text += fmt::format(
        "| {} | {} | {} | {} | {:.1f} [{:.1f}, {:.1f}] | {} | {} | {} | {} |\n", one.row.mtu, name(one.row.processing),
        size_text(one.row.chunk), column_of(one.row), goodput.at("median").get<double>(),
        goodput.at("min").get<double>(), goodput.at("max").get<double>(), latency_text(cell, "chunk_p50_us"),
        latency_text(cell, "chunk_p99_us"), latency_text(cell, "chunk_p999_us"), cell.value("multiprocessors", 0U));
  }
  return text + fmt::format("\nPublished: {} Gb/s with processing, {} without. {}.\n", kPublishedWith,
                            kPublishedWithout, kPublishedBy);
}

Result<ChunkTable> run_chunk_table(const std::vector<ChunkRow>& rows, const config::BenchConfig& bench,
                                   const std::function<Result<TransferFigures>(const Transfer&)>& run,
                                   const std::atomic<bool>& stop,
                                   const std::function<void(const std::string&)>& progress) {
  ChunkTable table;
  for (const ChunkRow& row : rows) table.samples.push_back({row, {}});
  table.pairs = pipelines_of(bench);
  table.connections = bench.parallel;
  const std::uint16_t rounds = bench.rounds != 0 ? bench.rounds : kRounds;
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(bench.seed);
  progress(fmt::format("stream-chunk: {} rows, {} times", rows.size(), rounds));
  ProgressLines parts("stream-chunk", std::uint64_t{rounds} * order.size());
  for (std::uint16_t round = 0; round < rounds; ++round) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (const std::size_t i : order) {
      if (stop.load(std::memory_order_relaxed)) return table;
      WARPLINE_TRY(const TransferFigures figures, run(rows[i].transfer(bench)));
      if (stop.load(std::memory_order_relaxed)) return table;
      table.samples[i].rounds.push_back(figures);
      parts.step();
    }
  }
  return table;
}

}  // namespace warpline::transfers
