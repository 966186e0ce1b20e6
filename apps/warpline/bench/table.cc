// SPDX-License-Identifier: Apache-2.0
#include "bench/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "warpline/base/time/progress_lines.h"

namespace warpline::bench {
namespace {

using PlainJson = nlohmann::json;

constexpr std::uint16_t kRounds = 5;  ///< where none are asked for

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "no message";
  const auto begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

/// The report of a run that went well; of another one, the failure is noted.
std::optional<PlainJson> report_of(const Result<ChildRun>& run, BenchSamples& samples) {
  const auto fail = [&](int code, std::string why) {
    samples.code = code;
    samples.failure = std::move(why);
    return std::nullopt;
  };
  if (!run) return fail(static_cast<int>(run.error().kind), run.error().message());
  if (run->timed_out) return fail(static_cast<int>(ErrorKind::environment), "it hung and was ended");
  if (run->code != 0) return fail(run->code, fmt::format("exit code {}: {}", run->code, last_line(run->errors)));
  PlainJson report = PlainJson::parse(run->output, nullptr, false);
  if (report.is_discarded() || !report.contains("rate")) {
    return fail(static_cast<int>(ErrorKind::environment), "it reported nothing");
  }
  return report;
}

double lost_part(const PlainJson& report) {
  std::uint64_t lost = 0, missed = 0;
  for (const auto& [reason, packets] : report.at("drops").items()) lost += packets.get<std::uint64_t>();
  for (const PlainJson& port : report.value("ports", PlainJson::array())) {
    missed += port.value("missed", std::uint64_t{0}) + port.value("nombuf", std::uint64_t{0});
  }
  const auto came = static_cast<double>(report.at("rx").at("packets").get<std::uint64_t>() + missed);
  return came == 0 ? 0 : static_cast<double>(lost + missed) / came;
}

void add_timed(const PlainJson& report, BenchSamples& samples) {
  samples.mpps.push_back(report.at("rate").at("mpps").get<double>());
  samples.gbps.push_back(report.at("rate").value("gbps_l2", 0.0));
  samples.loss.push_back(lost_part(report));
  if (report.contains("latency_ns")) {
    samples.p50_us.push_back(report["latency_ns"].at("p50").get<double>() / 1e3);
    samples.p99_us.push_back(report["latency_ns"].at("p99").get<double>() / 1e3);
  }
  if (report.contains("gpu") && report["gpu"].contains("memory_bytes")) {
    samples.gpu_memory = report["gpu"]["memory_bytes"].get<std::uint64_t>();
  }
}

void verify(const Result<ChildRun>& run, BenchSamples& samples) {
  const auto report = report_of(run, samples);
  if (!report) return;
  const auto checked = report->value("verify", PlainJson::object()).value("checked", std::uint64_t{0});
  if (checked != 0) {
    samples.checked = checked;
  } else {
    samples.code = static_cast<int>(ErrorKind::verification);
    samples.failure = "nothing was verified";
  }
}

}  // namespace

BenchTable run_bench_plan(BenchPlan plan, const config::BenchConfig& bench, const RunForward& run,
                          const Progress& progress) {
  BenchTable table{.plan = std::move(plan), .samples = {}, .notes = {}};
  std::vector<std::pair<std::size_t, std::size_t>> cells;
  for (std::size_t row = 0; row < table.plan.rows.size(); ++row) {
    table.samples.emplace_back(table.plan.rows[row].cells.size());
    for (std::size_t cell = 0; cell < table.plan.rows[row].cells.size(); ++cell) cells.emplace_back(row, cell);
  }
  const auto at = [&](auto place) -> BenchSamples& { return table.samples[place.first][place.second]; };
  const auto cell_at = [&](auto place) -> const BenchCell& { return table.plan.rows[place.first].cells[place.second]; };

  const std::uint16_t rounds = bench.rounds != 0 ? bench.rounds : kRounds;
  progress(fmt::format("{}: {} cells are verified, then timed {} times", table.plan.name, cells.size(), rounds));
  ProgressLines parts(table.plan.name, (std::uint64_t{rounds} + 1) * cells.size());
  for (const auto& place : cells) {
    verify(run(cell_at(place).verified), at(place));
    parts.step();
  }
  std::mt19937_64 random(bench.seed);
  for (std::uint16_t round = 0; round < rounds; ++round) {
    std::ranges::shuffle(cells, random);
    for (const auto& place : cells) {
      parts.step();
      if (at(place).failed()) continue;
      if (const auto report = report_of(run(cell_at(place).timed), at(place))) add_timed(*report, at(place));
    }
  }
  return table;
}

}  // namespace warpline::bench
