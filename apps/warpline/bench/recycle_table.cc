// SPDX-License-Identifier: Apache-2.0
// What `bench recycle` measured, as JSON and as Markdown, and what to make of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <rte_version.h>

#include "bench/recycle.h"
#include "warpline/memory/recycle_setup.h"

namespace warpline::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLeastGain = 0.10;   ///< of `direct` over `off`, in the base case
constexpr double kMostBeyond = 0.01;  ///< of `auto` over the best way

double rounded(double value) { return std::round(value * 1000) / 1000; }

Json estimate_json(const Estimate& value) {
  return {{"median", rounded(value.median)}, {"ci95", {rounded(value.low), rounded(value.high)}}};
}

std::string text(const Estimate& value) {
  return fmt::format("{:.1f} [{:.1f}, {:.1f}]", value.median, value.low, value.high);
}
std::string percent(const Estimate& ratio) {
  return fmt::format("{:+.1f} % [{:+.1f}, {:+.1f}]", 100 * (ratio.median - 1), 100 * (ratio.low - 1),
                     100 * (ratio.high - 1));
}

Json cell_json(const RecycleSetting& setting, const RecycleSamples& samples) {
  Json json = {{"dpdk", rte_version()}, {"setting", describe(setting)}};
  if (setting.probe == RecycleProbe::two_lcores) json["refused"] = samples.refused;
  if (!samples.cycles.empty()) {
    json["cycles_per_packet"] = estimate_json(estimate(samples.cycles));
    Json values = Json::array();
    for (const double value : samples.cycles) values.push_back(rounded(value));
    json["cycles_per_packet"]["samples"] = std::move(values);
    json["engine_cycles_per_packet"] = rounded(median_of(samples.engine));
    json["recycled_per_packet"] = rounded(median_of(samples.recycled));
    json["mempool_gets_per_packet"] = rounded(median_of(samples.gets));
    json["dropped_packets"] = samples.dropped;
    json["taken_again"] = samples.repeated;
  }
  if (!samples.notes.empty()) json["notes"] = samples.notes;
  return json;
}

std::string cell_text(const RecycleSetting& setting, const RecycleSamples& samples) {
  if (setting.probe == RecycleProbe::two_lcores) return samples.refused ? "refused" : "NOT refused";
  if (samples.cycles.empty()) return "not measured";
  return fmt::format("{}, {:.0f} %", text(estimate(samples.cycles)), 100 * median_of(samples.recycled));
}

/// The samples of one row by way.
class RowView {
 public:
  RowView(const RecycleBenchTable& table, const RecycleRow& row) : table_(table), row_(row) {}

  /// Null: the row has none, or none were taken.
  [[nodiscard]] const std::vector<double>* cycles(memory::RecycleWay way) const {
    for (const std::size_t cell : row_.cells) {
      const bool complete = !table_.samples[cell].cycles.empty() && table_.samples[cell].cycles.size() >= table_.rounds;
      if (table_.plan.settings[cell].way == way && complete) return &table_.samples[cell].cycles;
    }
    return nullptr;
  }
  [[nodiscard]] bool complete() const {
    return std::ranges::all_of(kRecycleWays, [this](memory::RecycleWay way) { return cycles(way) != nullptr; });
  }
  /// That with the lowest median, but for `auto`.
  [[nodiscard]] memory::RecycleWay best() const {
    memory::RecycleWay best = memory::RecycleWay::off;
    for (const memory::RecycleWay way : kRecycleWays) {
      if (way == memory::RecycleWay::automatic) continue;
      if (median_of(*cycles(way)) < median_of(*cycles(best))) best = way;
    }
    return best;
  }
  [[nodiscard]] Estimate ratio(memory::RecycleWay a, memory::RecycleWay b) const {
    return estimate_ratio(*cycles(a), *cycles(b));
  }

 private:
  const RecycleBenchTable& table_;
  const RecycleRow& row_;
};

const RecycleRow* find_row(const RecycleBenchTable& table, std::string_view factor) {
  const auto found = std::ranges::find(table.plan.rows, factor, &RecycleRow::factor);
  return found == table.plan.rows.end() ? nullptr : &*found;
}

/// How far twins are apart: the noise of a ratio.
std::optional<Estimate> twins(const RecycleBenchTable& table) {
  const RecycleRow* base = find_row(table, "base");
  const RecycleRow* control = find_row(table, "control");
  if (base == nullptr || control == nullptr || table.rounds == 0) return std::nullopt;
  const auto* a = RowView(table, *control).cycles(memory::RecycleWay::off);
  const auto* b = RowView(table, *base).cycles(memory::RecycleWay::off);
  if (a == nullptr || b == nullptr) return std::nullopt;
  return estimate_ratio(*a, *b);
}

Json row_json(const RecycleBenchTable& table, const RecycleRow& row) {
  Json json = {{"factor", row.factor}, {"value", row.value}, {"context", row.context}, {"ways", Json::object()}};
  for (const std::size_t cell : row.cells) {
    const RecycleSetting& setting = table.plan.settings[cell];
    json["ways"][std::string(name(setting.way))] = cell_json(setting, table.samples[cell]);
  }
  const RowView view(table, row);
  if (!view.complete()) return json;
  json["best"] = name(view.best());
  json["direct_to_off"] = estimate_json(view.ratio(memory::RecycleWay::direct, memory::RecycleWay::off));
  json["auto_to_best"] = estimate_json(view.ratio(memory::RecycleWay::automatic, view.best()));
  json["auto_to_off"] = estimate_json(view.ratio(memory::RecycleWay::automatic, memory::RecycleWay::off));
  return json;
}

}  // namespace

std::vector<RecycleVerdict> judge(const RecycleBenchTable& table) {
  std::vector<RecycleVerdict> verdicts;
  const std::optional<Estimate> noise = twins(table);
  const RecycleRow* base = find_row(table, "base");
  if (!noise || !RowView(table, *base).complete()) return verdicts;
  const RowView view(table, *base);
  const Estimate gain = view.ratio(memory::RecycleWay::direct, memory::RecycleWay::off);
  verdicts.push_back({"direct at least 10 % below off", percent(gain), gain.median <= 1 - kLeastGain});
  const Estimate direct = estimate(*view.cycles(memory::RecycleWay::direct));
  for (const memory::RecycleWay way : {memory::RecycleWay::fast_free, memory::RecycleWay::cache}) {
    const Estimate other = estimate(*view.cycles(way));
    verdicts.push_back({fmt::format("direct below {}, intervals apart", name(way)),
                        fmt::format("{} and {} cycles", text(direct), text(other)), direct.high < other.low});
  }
  // What the twins differ by is no difference.
  const double most_noise = std::max(noise->high - 1, 1 - noise->low);
  std::string beyond_best, beyond_off;
  int rows = 0;
  for (const RecycleRow& row : table.plan.rows) {
    const RowView any(table, row);
    if (row.context || !any.complete()) continue;
    ++rows;
    const Estimate best = any.ratio(memory::RecycleWay::automatic, any.best());
    const Estimate off = any.ratio(memory::RecycleWay::automatic, memory::RecycleWay::off);
    const std::string label = fmt::format("; {} {}", row.factor, row.value);
    if (best.low > 1 + kMostBeyond) beyond_best += fmt::format("{} {}", label, percent(best));
    if (off.low > 1 + most_noise) beyond_off += fmt::format("{} {}", label, percent(off));
  }
  verdicts.push_back({"auto nowhere seen more than 1 % above the best way", fmt::format("{} rows{}", rows, beyond_best),
                      beyond_best.empty()});
  verdicts.push_back({fmt::format("auto nowhere seen above off by more than noise ({:.1f} %)", 100 * most_noise),
                      fmt::format("{} rows{}", rows, beyond_off), beyond_off.empty()});
  return verdicts;
}

int RecycleBenchTable::exit_code() const {
  return std::ranges::all_of(judge(*this), &RecycleVerdict::met) ? 0 : static_cast<int>(ErrorKind::threshold);
}

Json RecycleBenchTable::to_json() const {
  Json json = {
      {"name", "recycle"},       {"title", "how sent buffers come back"},
      {"dpdk", rte_version()},   {"unit", "invariant TSC cycles a packet, without those of the software NIC's engine"},
      {"frame_bytes", 64},       {"rounds", rounds},
      {"packets", size.packets}, {"hugepages", hugepages}};
  if (const auto noise = twins(*this)) json["control"] = estimate_json(*noise);
  json["rows"] = Json::array();
  for (const RecycleRow& row : plan.rows) json["rows"].push_back(row_json(*this, row));
  json["verdicts"] = Json::array();
  for (const RecycleVerdict& verdict : judge(*this)) {
    json["verdicts"].push_back({{"expected", verdict.expected}, {"seen", verdict.seen}, {"met", verdict.met}});
  }
  return json;
}

std::string RecycleBenchTable::to_markdown() const {
  std::string out = fmt::format(
      "How sent buffers come back: {}, {} rounds in random order, {}. Invariant TSC cycles a packet without those of "
      "the software NIC's engine, median [95 % interval]; buffers recycled directly, of all packets.\n\n| | |",
      rte_version(), rounds, hugepages ? "hugepages" : "ordinary pages");
  for (const memory::RecycleWay way : kRecycleWays) out += fmt::format(" {} |", name(way));
  out += "\n| --- | --- |";
  for (std::size_t i = 0; i < kRecycleWays.size(); ++i) out += " --- |";
  out += "\n";
  std::set<std::string> notes;
  for (const RecycleRow& row : plan.rows) {
    out += fmt::format("| {} | {} |", row.factor, row.value);
    for (const memory::RecycleWay way : kRecycleWays) {
      const auto cell = std::ranges::find_if(row.cells, [&](std::size_t i) { return plan.settings[i].way == way; });
      if (cell == row.cells.end()) {
        out += " |";
        continue;
      }
      out += fmt::format(" {} |", cell_text(plan.settings[*cell], samples[*cell]));
      for (const std::string& note : samples[*cell].notes) {
        notes.insert(fmt::format("{} {}, {}: {}", row.factor, row.value, name(way), note));
      }
    }
    out += "\n";
  }
  if (const auto noise = twins(*this)) out += fmt::format("\nControl, off beside its twin: {}.\n", percent(*noise));
  for (const RecycleVerdict& verdict : judge(*this)) {
    out += fmt::format("- {}: {}: {}\n", verdict.met ? "met" : "MISSED", verdict.expected, verdict.seen);
  }
  for (const std::string& note : notes) out += fmt::format("- {}\n", note);
  return out;
}

}  // namespace warpline::bench
