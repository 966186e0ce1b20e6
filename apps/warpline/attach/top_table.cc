// SPDX-License-Identifier: Apache-2.0
#include "attach/top_table.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>

#include "attach/top_metrics.h"

namespace warpline::attach {
namespace {

/// Returns the values of a metric; null if the run has none of that name.
const std::map<std::string, double>* values_of(const Sample& sample, std::string_view metric) {
  const auto found = sample.metrics.find(std::string(metric));
  return found == sample.metrics.end() ? nullptr : &found->second;
}

std::string row_name(const TopMetric& metric, const std::string& label) {
  if (label == "value") return std::string(metric.what);
  return metric.what.empty() ? label : label + " " + std::string(metric.what);
}

}  // namespace

void TopTable::add(const Sample& sample) {
  const double seconds = last_s_ ? sample.time_s - *last_s_ : 0;
  const auto rate = [&](double now, double before) { return seconds > 0 ? std::max(0.0, now - before) / seconds : 0; };
  for (const TopMetric& metric : kTopMetrics) {
    const auto* const values = values_of(sample, metric.name);
    if (values == nullptr) continue;
    const auto* const bytes = metric.bytes.empty() ? nullptr : values_of(sample, metric.bytes);
    for (const auto& [label, total] : *values) {
      const Key key{metric.kind, row_name(metric, label)};
      if (metric.if_any && total == 0 && !series_.contains(key)) continue;
      Series& series = series_[key];
      // What begins to be counted between two samples was 0 before.
      const double before = series.seen ? series.total : metric.if_any ? 0 : total;
      series.per_s = rate(total, before);
      if (last_s_) series.history.push_back(series.per_s);
      if (series.history.size() > kHistory) series.history.pop_front();
      if (bytes != nullptr && bytes->contains(label)) {
        const double now = bytes->at(label);
        series.bits_per_s = 8 * rate(now, series.bytes.value_or(now));
        series.bytes = now;
      }
      series.total = total;
      series.seen = true;
    }
  }
  last_s_ = sample.time_s;
}

std::vector<TopRow> TopTable::rows(SortBy sort) const {
  std::vector<TopRow> rows;
  for (const auto& [key, series] : series_) {
    rows.push_back({.kind = key.first,
                    .name = key.second,
                    .total = series.total,
                    .per_s = series.per_s,
                    .bits_per_s = series.bits_per_s,
                    .history = {series.history.begin(), series.history.end()}});
  }
  const auto key = [sort](const TopRow& row) {
    const double most = sort == SortBy::rate ? row.per_s : sort == SortBy::total ? row.total : 0;
    return std::tuple(row.kind, -most, std::string_view(row.name));
  };
  std::ranges::sort(rows, {}, key);
  return rows;
}

nlohmann::ordered_json TopTable::to_json() const {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const TopRow& row : rows(SortBy::name)) {
    nlohmann::ordered_json json = {
        {"kind", warpline::name(row.kind)}, {"name", row.name}, {"total", row.total}, {"per_s", row.per_s}};
    if (row.bits_per_s) json["bits_per_s"] = *row.bits_per_s;
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace warpline::attach
