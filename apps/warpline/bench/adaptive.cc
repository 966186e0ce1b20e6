// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptive.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "warpline/base/kinds.h"
#include "warpline/base/statistics/bootstrap.h"
#include "warpline/base/time/progress_lines.h"

namespace warpline::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint16_t kAdaptiveRounds = 5;
constexpr std::uint16_t kAdaptiveLoads[] = {1, 3, 10, 30, 50, 70, 90, 100};
constexpr const char* kFixedBursts[] = {"1", "4", "16", "64", "256", "512"};
constexpr double kThroughputGoal = 0.95;
constexpr double kP99Goal = 1.5;

std::vector<AdaptiveBenchCell> adaptive_cells() {
  std::vector<AdaptiveBenchCell> cells = {{.name = "adaptive", .burst = "adaptive"},
                                          {.name = "again", .burst = "adaptive"}};
  for (const char* burst : kFixedBursts) cells.push_back({.name = burst, .burst = burst});
  return cells;
}

std::vector<std::string> adaptive_arguments(const config::BenchConfig& bench, const std::string& burst,
                                            const std::string& rate) {
  std::vector<std::string> arguments = {"forward",     "--loopback",
                                        "--verify",    "--json",
                                        "--interval",  "3600s",
                                        "--engine",    std::string(name(bench.engine)),
                                        "--model",     "pipeline",
                                        "--burst",     burst,
                                        "--rate",      rate,
                                        "--seconds",   fmt::format("{}ns", bench.seconds.value),
                                        "--pipelines", std::to_string(std::max<std::uint16_t>(bench.pipelines, 1))};
  if (runs_on_gpu(bench.engine)) {
    for (const char* word : {"--memory", "pinned", "--gpu"}) arguments.emplace_back(word);
    arguments.push_back(std::to_string(bench.gpu));
  }
  return arguments;
}

/// Adds what one run came to. A run that lost packets has done what it could: that is counted, not a failure.
void add_run(const Result<ChildRun>& run, AdaptiveBenchCell& cell) {
  const auto fail = [&cell](int code, std::string why) {
    cell.code = code;
    cell.failure = std::move(why);
  };
  if (!run) return fail(static_cast<int>(run.error().kind), run.error().message());
  if (run->timed_out) return fail(static_cast<int>(ErrorKind::environment), "it hung and was ended");
  const nlohmann::json report = nlohmann::json::parse(run->output, nullptr, false);
  if (report.is_discarded() || !report.contains("rate") || !report.contains("latency_ns")) {
    const int code = run->code != 0 ? run->code : static_cast<int>(ErrorKind::environment);
    return fail(code, fmt::format("exit code {}, and no report: {}", run->code, run->errors));
  }
  if (report.at("verify").value("bad", 0) != 0) {
    return fail(static_cast<int>(ErrorKind::verification), "frames came back changed");
  }
  const auto sent = report.at("generated").at("packets").get<double>();
  const auto missing = report.at("verify").value("missing", 0.0);
  cell.mpps.push_back(report.at("rate").at("mpps").get<double>());
  cell.p99_us.push_back(report.at("latency_ns").at("p99").get<double>() / 1e3);
  cell.lost.push_back(sent > 0 ? missing / sent : 0);
}

Result<void> check_adaptive(const config::BenchConfig& bench) {
  if (!bench.only.empty() || !bench.ways.empty() || bench.packets != 0 || bench.keep_disturbed) {
    return usage_error("cannot use --only, --ways, --packets or --keep-disturbed",
                       "adaptive has rows and runs for seconds", "use --rows and --seconds");
  }
  for (const std::uint16_t load : bench.rows) {
    if (load <= 100) continue;
    return usage_error(fmt::format("--rows: cannot use {}", load), "a row of adaptive is a load in percent",
                       "use 1 to 100");
  }
  return {};
}

const AdaptiveBenchCell& named(const AdaptiveBenchRow& row, const std::string& name) {
  return *std::ranges::find(row.cells, name, &AdaptiveBenchCell::name);
}

Json adaptive_summary(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return {{"median", median_of(values)}, {"min", least}, {"max", most}, {"samples", values}};
}

}  // namespace

AdaptiveBenchRow::Ratios AdaptiveBenchRow::ratios(const std::string& name) const {
  double throughput = 0;
  for (const AdaptiveBenchCell& cell : cells) {
    if (cell.mpps.empty()) return {};
    if (cell.burst != "adaptive") throughput = std::max(throughput, median_of(cell.mpps));
  }
  std::optional<double> p99;
  for (const AdaptiveBenchCell& cell : cells) {
    if (cell.burst == "adaptive" || median_of(cell.mpps) < kThroughputGoal * throughput) continue;
    p99 = std::min(p99.value_or(median_of(cell.p99_us)), median_of(cell.p99_us));
  }
  const AdaptiveBenchCell& ours = named(*this, name);
  if (throughput == 0 || !p99 || *p99 == 0) return {};
  return {median_of(ours.mpps) / throughput, median_of(ours.p99_us) / *p99};
}

bool AdaptiveBenchRow::met() const {
  const Ratios ours = ratios("adaptive");
  return ours.throughput >= kThroughputGoal && ours.p99 > 0 && ours.p99 <= kP99Goal;
}

Result<AdaptiveBenchTable> run_adaptive_bench(const config::BenchConfig& bench, const RunForward& run,
                                              const Progress& progress) {
  WARPLINE_CHECK(check_adaptive(bench));
  AdaptiveBenchTable table{.engine = std::string(name(bench.engine)),
                           .pipelines = std::max<std::uint16_t>(bench.pipelines, 1)};
  const std::uint16_t rounds = bench.rounds != 0 ? bench.rounds : kAdaptiveRounds;
  std::mt19937_64 random(bench.seed);

  std::vector<AdaptiveBenchCell> full = adaptive_cells();
  std::erase_if(full, [](const AdaptiveBenchCell& cell) { return cell.burst == "adaptive"; });
  for (std::uint16_t round = 0; round < rounds; ++round) {
    std::ranges::shuffle(full, random);
    for (AdaptiveBenchCell& cell : full) {
      add_run(run(adaptive_arguments(bench, cell.burst, "max")), cell);
      if (!cell.failure.empty()) {
        return Error{static_cast<ErrorKind>(cell.code), fmt::format("adaptive: burst {}", cell.burst), cell.failure,
                     ""};
      }
    }
  }
  for (const AdaptiveBenchCell& cell : full) table.capacity_mpps = std::max(table.capacity_mpps, median_of(cell.mpps));
  progress(fmt::format("adaptive: the engine {} carries {:.3f} Mpps", table.engine, table.capacity_mpps));

  std::vector<std::uint16_t> loads(bench.rows);
  if (loads.empty()) loads.assign(std::begin(kAdaptiveLoads), std::end(kAdaptiveLoads));
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (const std::uint16_t load : loads) {
    table.rows.push_back({load, adaptive_cells()});
    for (std::size_t cell = 0; cell < table.rows.back().cells.size(); ++cell) {
      places.emplace_back(table.rows.size() - 1, cell);
    }
  }
  ProgressLines parts("adaptive", std::uint64_t{rounds} * places.size());
  for (std::uint16_t round = 0; round < rounds; ++round) {
    std::ranges::shuffle(places, random);
    for (const auto& [row, column] : places) {
      parts.step();
      AdaptiveBenchCell& cell = table.rows[row].cells[column];
      if (!cell.failure.empty()) continue;
      const double packets = std::max(1.0, table.capacity_mpps * 1e6 * table.rows[row].load / 100);
      add_run(run(adaptive_arguments(bench, cell.burst, fmt::format("{:.0f}pps", packets))), cell);
    }
  }
  return table;
}

Json AdaptiveBenchTable::to_json() const {
  Json json = {{"name", "adaptive"}, {"engine", engine}, {"pipelines", pipelines}, {"capacity_mpps", capacity_mpps}};
  json["goal"] = {{"throughput", kThroughputGoal}, {"p99", kP99Goal}};
  json["rows"] = Json::array();
  for (const AdaptiveBenchRow& row : rows) {
    Json columns = Json::object();
    for (const AdaptiveBenchCell& cell : row.cells) {
      Json& column = columns[cell.name] = Json::object();
      if (!cell.failure.empty()) column["failure"] = cell.failure;
      if (cell.mpps.empty()) continue;
      column["mpps"] = adaptive_summary(cell.mpps);
      column["p99_us"] = adaptive_summary(cell.p99_us);
      column["lost"] = adaptive_summary(cell.lost);
    }
    const AdaptiveBenchRow::Ratios ours = row.ratios("adaptive");
    const AdaptiveBenchRow::Ratios control = row.ratios("again");
    json["rows"].push_back({{"load_percent", row.load},
                            {"columns", columns},
                            {"throughput_by_best", ours.throughput},
                            {"p99_by_best", ours.p99},
                            {"control", {{"throughput_by_best", control.throughput}, {"p99_by_best", control.p99}}},
                            {"met", row.met()}});
  }
  return json;
}

std::string AdaptiveBenchTable::to_markdown() const {
  std::string text = fmt::format(
      "Adaptive batches beside fixed ones, engine {}, {} pipelines, {:.3f} Mpps at most. Each cell: Mpps, and the 99th "
      "percentile from sender to sender in us; medians of the rounds.\n\n| load |",
      engine, pipelines, capacity_mpps);
  std::string rule = "\n| --- |";
  for (const AdaptiveBenchCell& cell : adaptive_cells()) {
    text += fmt::format(" {} |", cell.name);
    rule += " --- |";
  }
  text += " adaptive / best: throughput, p99 | met |" + rule + " --- | --- |\n";
  for (const AdaptiveBenchRow& row : rows) {
    text += fmt::format("| {} % |", row.load);
    for (const AdaptiveBenchCell& cell : row.cells) {
      text += cell.mpps.empty() ? " failed |"
                                : fmt::format(" {:.3f}, {:.1f} |", median_of(cell.mpps), median_of(cell.p99_us));
    }
    const AdaptiveBenchRow::Ratios ours = row.ratios("adaptive");
    text += fmt::format(" {:.2f}, {:.2f} | {} |\n", ours.throughput, ours.p99, row.met() ? "yes" : "no");
  }
  for (const AdaptiveBenchRow& row : rows) {
    for (const AdaptiveBenchCell& cell : row.cells) {
      if (!cell.failure.empty()) text += fmt::format("- {} %, {}: {}\n", row.load, cell.name, cell.failure);
    }
  }
  return text;
}

int AdaptiveBenchTable::exit_code() const {
  for (const AdaptiveBenchRow& row : rows) {
    for (const AdaptiveBenchCell& cell : row.cells) {
      if (cell.code != 0) return cell.code;
    }
  }
  return 0;
}

}  // namespace warpline::bench
