// SPDX-License-Identifier: Apache-2.0
#include "page/body/contenders.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "page/body/records.h"
#include "page/document/shape.h"
#include "page/draw/chart.h"
#include "page/draw/table.h"
#include "page/text/markup.h"
#include "page/text/names.h"
#include "page/text/unit.h"

namespace warpline::page {
namespace {

bool is_published(std::string_view key, const Json& peers, const std::string& unit) {
  return key.starts_with("published") && peers.is_object() && unit_in(key) == unit && !unit.empty();
}

const Json* at_path(const Json& record, const std::string& path) {
  for (const Leaf& leaf : leaves(record)) {
    if (leaf.path == path) return leaf.value;
  }
  return nullptr;
}

std::string contenders_figure(const Json& array, const std::string& key, const std::vector<std::string>& names,
                              const Around& around, const std::vector<std::string>& contenders,
                              const std::string& figure, Charts& charts) {
  const std::string unit = unit_in(figure).empty() ? around.unit : unit_in(figure);
  Chart chart{.title = words(figure), .unit = unit, .series = {}, .rows = {}, .lines = {}};
  for (const std::string& contender : contenders) chart.series.push_back(words(contender));
  Table table{caption(words(figure), unit), {""}, {}};
  std::vector<std::string> published;
  for (const Json& element : array) {
    for (const auto& [peer_key, peers] : element.items()) {
      if (!is_published(peer_key, peers, unit)) continue;
      for (const auto& [peer, value] : peers.items()) {
        if (!is_among(peer, published)) published.push_back(peer);
      }
    }
  }
  for (const std::string& peer : published) chart.series.push_back(words(peer) + ", published");
  for (const std::string& name : chart.series) table.headings.push_back(name);
  for (std::size_t i = 0; i < array.size(); ++i) {
    Row row{names[i], Role::subject, {}};
    std::vector<std::string> cells = {escape(names[i])};
    for (std::size_t s = 0; s < contenders.size(); ++s) {
      const Json* record = member(array[i].at(key), contenders[s]);
      const Json* value = record == nullptr ? nullptr : at_path(*record, figure);
      const auto statistic = value == nullptr ? std::nullopt : as_statistic(*value);
      if (statistic) row.marks.push_back(mark_of(*statistic, s));
      cells.push_back(value == nullptr ? "" : cell(figure, *value));
    }
    for (std::size_t p = 0; p < published.size(); ++p) {
      const Json* value = nullptr;
      for (const auto& [peer_key, peers] : array[i].items()) {
        if (is_published(peer_key, peers, unit) && peers.contains(published[p])) value = &peers.at(published[p]);
      }
      cells.push_back(value == nullptr ? "" : scalar(*value));
      if (value == nullptr || !value->is_number()) continue;
      Mark mark;
      mark.value = value->get<double>();
      mark.number = value;
      mark.series = contenders.size() + p;
      row.marks.push_back(mark);
    }
    chart.rows.push_back(std::move(row));
    table.rows.push_back(std::move(cells));
  }
  return pair(charts.draw(chart), draw(table));
}

}  // namespace

std::string contenders_key(const Json& array) {
  for (const auto& [key, inner] : array.front().items()) {
    const bool everywhere = std::ranges::all_of(array, [&, &name = key](const Json& element) {
      const Json* map = member(element, name);
      return map != nullptr && map->is_object() && !map->empty() && std::ranges::all_of(*map, [](const Json& record) {
               return record.is_object() && !as_statistic(record) && is_flat_record(record);
             });
    });
    const auto has_statistic = [](const Json& record) {
      return std::ranges::any_of(record, [](const Json& cell) { return as_statistic(cell).has_value(); });
    };
    if (everywhere && std::ranges::any_of(inner, has_statistic)) return key;
  }
  return "";
}

std::string contenders_html(const Json& array, const std::string& key, const std::vector<std::string>& names,
                            const Around& around, Charts& charts) {
  std::vector<std::string> contenders, figures;
  for (const Json& element : array) {
    for (const auto& [contender, record] : element.at(key).items()) {
      if (!is_among(contender, contenders)) contenders.push_back(contender);
      for (const Leaf& leaf : leaves(record)) {
        if (as_statistic(*leaf.value) && !is_among(leaf.path, figures)) figures.push_back(leaf.path);
      }
    }
  }
  std::string html;
  for (const std::string& figure : figures)
    html += contenders_figure(array, key, names, around, contenders, figure, charts);
  std::vector<Record> rest, inner;
  for (std::size_t i = 0; i < array.size(); ++i) {
    Record record{names[i], leaves(array[i])};
    std::erase_if(record.leaves, [&](const Leaf& leaf) { return leaf.path.starts_with(key + "."); });
    rest.push_back(std::move(record));
    for (const auto& [contender, values] : array[i].at(key).items()) {
      Record cells{names[i] + ", " + words(contender), leaves(values)};
      std::erase_if(cells.leaves, [](const Leaf& leaf) { return as_statistic(*leaf.value).has_value(); });
      inner.push_back(std::move(cells));
    }
  }
  const auto is_empty = [](const Record& record) { return record.leaves.empty(); };
  if (!std::ranges::all_of(rest, is_empty)) html += records_html(rest, around, nullptr, charts);
  if (!std::ranges::all_of(inner, is_empty)) {
    Around below = around;
    below.title = around.title + ", " + words(key);
    below.unit.clear();
    html += folded("other values of each", records_html(inner, below, nullptr, charts));
  }
  return html;
}

}  // namespace warpline::page
