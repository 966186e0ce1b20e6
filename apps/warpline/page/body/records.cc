// SPDX-License-Identifier: Apache-2.0
#include "page/body/records.h"

#include <algorithm>
#include <iterator>

#include "page/document/document.h"
#include "page/document/shape.h"
#include "page/draw/chart.h"
#include "page/text/markup.h"
#include "page/text/names.h"
#include "page/text/unit.h"

namespace warpline::page {
namespace {

constexpr std::size_t kMostBars = 40;  ///< rows of a chart of plain numbers
constexpr std::size_t kMostPlain = 2;  ///< charts of plain numbers for one table

std::string record_charts(const std::vector<Record>& records, const Around& around, const Json* rows, Charts& charts) {
  std::vector<std::string> paths;
  bool statistics = false;
  for (const Record& record : records) {
    for (const Leaf& leaf : record.leaves) {
      if (as_statistic(*leaf.value)) statistics = true;
      if ((as_statistic(*leaf.value) || leaf.value->is_number_float()) && !is_among(leaf.path, paths))
        paths.push_back(leaf.path);
    }
  }
  std::string drawn;
  std::size_t plain = 0;
  for (const std::string& path : paths) {
    const std::string unit =
        unit_of(path.substr(path.rfind('.') + 1), path == "figure" || path.ends_with("time") ? around.unit : "");
    const std::string name = path == "figure" ? around.title : around.title + ": " + words(path);
    Chart chart{.title = name, .unit = unit, .series = {}, .rows = {}, .lines = {}};
    bool is_plain = false;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const auto leaf = std::ranges::find(records[i].leaves, path, &Leaf::path);
      if (leaf == records[i].leaves.end()) continue;
      if (auto statistic = as_statistic(*leaf->value)) {
        // The values beside "figure" are its samples.
        const Json* record =
            rows == nullptr || path != "figure" ? nullptr : &*std::next(rows->begin(), static_cast<std::ptrdiff_t>(i));
        const Json* values = record == nullptr ? nullptr : member(*record, "values");
        if (values != nullptr && is_number_array(*values)) statistic->samples = numbers(*values);
        chart.rows.push_back({records[i].label, role_of(records[i].label), {mark_of(*statistic)}});
      } else if (!statistics && leaf->value->is_number()) {
        is_plain = true;
        chart.rows.push_back(bar(records[i].label, *leaf->value));
      }
    }
    if (chart.rows.size() < 2 || (is_plain && (chart.rows.size() > kMostBars || ++plain > kMostPlain))) continue;
    drawn += charts.draw(chart);
  }
  return drawn;
}

bool is_plain_record(const Json& value) {
  return value.is_object() && !value.empty() && !as_statistic(value) && std::ranges::all_of(value, is_scalar);
}

bool same_keys(const Json& a, const Json& b) {
  return a.size() == b.size() &&
         std::ranges::all_of(a.items(), [&](const auto& item) { return b.contains(item.key()); });
}

}  // namespace

std::string records_html(std::vector<Record> records, const Around& around, const Json* rows, Charts& charts) {
  std::vector<std::string> names;
  for (const Record& record : records) names.push_back(record.label);
  std::string common = all_have(without_common_parts(names));
  for (std::size_t i = 0; i < records.size(); ++i) records[i].label = names[i];
  const std::string plots = record_charts(records, around, rows, charts);
  const RecordTable table = table_of(caption(around.title, around.unit), "", records);
  if (!table.common.empty()) {
    Json shared = Json::object();
    for (const Leaf& leaf : table.common) shared[leaf.path] = *leaf.value;
    common += "<p class=\"common\">In all rows:</p>\n" + facts(shared);
  }
  const bool wide = plots.find("<figure") != plots.rfind("<figure") || table.table.headings.size() > 4;
  const std::string drawn = draw(table.table);
  if (plots.empty()) return common + drawn;
  return common + (wide ? "<div class=\"pair\">\n" + plots + "</div>\n" + drawn : pair(plots, drawn));
}

std::string sibling_records(const Json& value, const Around& around, bool root, Charts& charts,
                            std::set<const Json*>& told) {
  std::string html;
  for (const auto& [key, inner] : value.items()) {
    if (!is_plain_record(inner) || (root && is_head_key(key)) || told.contains(&inner)) continue;
    std::vector<Record> records;
    std::vector<const Json*> alike;
    for (const auto& [other_key, other] : value.items()) {
      if (!is_plain_record(other) || !same_keys(inner, other) || (root && is_head_key(other_key))) continue;
      records.push_back({words(other_key), leaves(other)});
      alike.push_back(&other);
    }
    if (records.size() < 2 || records.size() == value.size()) continue;
    told.insert(alike.begin(), alike.end());
    Around below = around;
    below.title.clear();
    for (const Record& record : records) below.title += (below.title.empty() ? "" : ", ") + record.label;
    html += section(below.title, around.level, records_html(records, below, nullptr, charts));
  }
  return html;
}

}  // namespace warpline::page
