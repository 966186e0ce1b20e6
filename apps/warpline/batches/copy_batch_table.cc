// SPDX-License-Identifier: Apache-2.0
#include "batches/copy_batch_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "warpline/base/statistics/bootstrap.h"
#include "warpline/base/time/progress_lines.h"

namespace warpline::batches {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kTitle =
    "packets received into GPU memory, by their size and the batch that they are copied in";
constexpr std::string_view kSource =
    "Susoon/Research_Report, batch_size_test.xlsx (2020): i7-6800K, 10 GbE, one lcore, by counts of packets, no byte "
    "of "
    "which was compared; its larger sizes as a share of line rate. \"polling\" is a kernel that is launched again and "
    "again";

/// Adds what one run came to, or why it came to nothing.
void add_run(const Result<bench::ChildRun>& run, CopyBatchSamples& samples) {
  const auto fail = [&samples](ErrorKind kind, std::string why, int code = 0) {
    samples.code = code != 0 ? code : static_cast<int>(kind);
    samples.failure = std::move(why);
  };
  if (!run) return fail(run.error().kind, run.error().message());
  if (run->timed_out) return fail(ErrorKind::environment, "it hung and was ended");
  if (run->code != 0)
    return fail(ErrorKind::environment, fmt::format("exit code {}: {}", run->code, run->errors), run->code);
  const nlohmann::json report = nlohmann::json::parse(run->output, nullptr, false);
  if (report.is_discarded() || !report.contains("ingest") || !report.contains("verify")) {
    return fail(ErrorKind::environment, "it reported nothing");
  }
  const nlohmann::json& verify = report["verify"];
  if (verify.value("bad", 1) != 0 || verify.value("checked", 0) == 0 || !report.value("conserved", false)) {
    return fail(ErrorKind::verification, "what arrived is not what was sent");
  }
  const nlohmann::json& ingest = report["ingest"];
  const auto offered = ingest.at("offered").at("packets").get<double>();
  const auto delivered = ingest.at("delivered").at("packets").get<double>();
  const nlohmann::json& delays = report.at("delays_ns");
  samples.taken.push_back(offered > 0 ? delivered / offered : 0);
  samples.mpps.push_back(report.at("rate").at("mpps").get<double>());
  samples.wait_p50_us.push_back(delays.at("batching").at("p50").get<double>() / 1e3);
  samples.p50_us.push_back(delays.at("gpu").at("p50").get<double>() / 1e3);
  samples.p99_us.push_back(delays.at("gpu").at("p99").get<double>() / 1e3);
  samples.memory_bytes = ingest.value("gpu_memory_bytes", std::uint64_t{0});
  samples.checked += verify.at("checked").get<std::uint64_t>();
}

Json batch_summary(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return {{"median", median_of(values)}, {"min", least}, {"max", most}, {"samples", values}};
}

Json cell_json(const CopyBatchSamples& samples) {
  Json json = Json::object();
  if (!samples.failure.empty()) json["failure"] = samples.failure;
  if (samples.taken.empty()) return json;
  json["taken"] = batch_summary(samples.taken);
  json["mpps"] = batch_summary(samples.mpps);
  json["wait_p50_us"] = batch_summary(samples.wait_p50_us);
  json["p50_us"] = batch_summary(samples.p50_us);
  json["p99_us"] = batch_summary(samples.p99_us);
  json["gpu_memory_bytes"] = samples.memory_bytes;
  json["verified_packets"] = samples.checked;
  return json;
}

/// "98.7 %, 16 MiB, 3.1/9.8 us"
std::string cell_text(const CopyBatchSamples& samples) {
  if (samples.taken.empty()) return "failed";
  return fmt::format("{:.1f} %, {:.0f} MiB, {:.3g}/{:.3g} us", 100 * median_of(samples.taken),
                     static_cast<double>(samples.memory_bytes) / (1 << 20), median_of(samples.p50_us),
                     median_of(samples.p99_us));
}

std::string share_text(const std::optional<double>& share) {
  return share ? fmt::format("{:.0f} %", 100 * *share) : "";
}

}  // namespace

CopyBatchTable run_copy_batch(CopyBatchPlan plan, const config::BenchConfig& bench, const bench::RunForward& run,
                              const bench::Progress& progress) {
  constexpr std::uint16_t kCopyBatchRounds = 1;  // where none are asked for: the table has hundreds of cells
  CopyBatchTable table{.plan = std::move(plan), .samples = {}, .notes = {}};
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (std::size_t row = 0; row < table.plan.rows.size(); ++row) {
    table.samples.emplace_back(table.plan.rows[row].cells.size());
    for (std::size_t cell = 0; cell < table.plan.rows[row].cells.size(); ++cell) places.emplace_back(row, cell);
  }
  const std::uint16_t rounds = bench.rounds != 0 ? bench.rounds : kCopyBatchRounds;
  progress(fmt::format("copy-batch: {} cells, {} times", places.size(), rounds));
  std::mt19937_64 random(bench.seed);
  ProgressLines parts("copy-batch", std::uint64_t{rounds} * places.size());
  for (std::uint16_t round = 0; round < rounds; ++round) {
    std::ranges::shuffle(places, random);
    for (const auto& [row, cell] : places) {
      CopyBatchSamples& samples = table.samples[row][cell];
      if (samples.failure.empty()) add_run(run(table.plan.rows[row].cells[cell].arguments), samples);
      parts.step();
    }
  }
  return table;
}

Json CopyBatchTable::to_json() const {
  Json json = {{"name", "copy-batch"}, {"title", kTitle}, {"rows", Json::array()}};
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    const CopyBatchRow& row = plan.rows[i];
    Json columns = Json::object();
    for (std::size_t cell = 0; cell < row.cells.size(); ++cell)
      columns[row.cells[cell].column] = cell_json(samples[i][cell]);
    json["rows"].push_back(
        {{"size", row.size}, {"batch", row.batch}, {"offered_mpps", row.offered_mpps}, {"columns", columns}});
    if (row.launch) json["rows"].back()["published"] = {{"launch", *row.launch}, {"polling", *row.polling}};
  }
  json["source"] = kSource;
  json["notes"] = notes;
  return json;
}

std::string CopyBatchTable::to_markdown() const {
  std::string text = fmt::format(
      "{}.\nEach cell: the part of the packets offered that the consumer got, GPU memory taken, and the time from a "
      "batch "
      "closed until it was seen done, p50/p99; medians of the rounds. Every packet was compared.\n\n| size | batch | "
      "offered Mpps | {} | study, launch | study, polling |\n",
      kTitle, fmt::join(plan.columns, " | "));
  text += "|";
  for (std::size_t i = 0; i < plan.columns.size() + 5; ++i) text += " --- |";
  text += "\n";
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    const CopyBatchRow& row = plan.rows[i];
    text += fmt::format("| {} | {} | {:.2f} |", row.size, row.batch, row.offered_mpps);
    for (const std::string& column : plan.columns) {
      const auto cell = std::ranges::find(row.cells, column, &CopyBatchCell::column);
      const auto index = static_cast<std::size_t>(cell - row.cells.begin());
      text += fmt::format(" {} |", cell == row.cells.end() ? "" : cell_text(samples[i][index]));
    }
    text += fmt::format(" {} | {} |\n", share_text(row.launch), share_text(row.polling));
  }
  text += fmt::format("\nThe study: {}.\n", kSource);
  for (const std::string& note : notes) text += fmt::format("- {}\n", note);
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    for (std::size_t cell = 0; cell < samples[i].size(); ++cell) {
      if (samples[i][cell].failure.empty()) continue;
      text += fmt::format("- {} bytes, {} a batch, {}: {}\n", plan.rows[i].size, plan.rows[i].batch,
                          plan.rows[i].cells[cell].column, samples[i][cell].failure);
    }
  }
  return text;
}

}  // namespace warpline::batches
