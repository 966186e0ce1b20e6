// SPDX-License-Identifier: Apache-2.0
#include "page/body/figures.h"

#include <algorithm>
#include <map>
#include <utility>

#include "page/document/document.h"
#include "page/document/shape.h"
#include "page/document/verdict.h"
#include "page/draw/table.h"
#include "page/text/markup.h"
#include "page/text/names.h"
#include "page/text/unit.h"

namespace warpline::page {

Ceilings::Ceilings(const Json& document) {
  const Json* ceilings = member(document, "ceilings");
  if (ceilings != nullptr && ceilings->is_object()) numbers_ = ceilings;
}

std::vector<Line> Ceilings::in(const std::string& unit, const Json& owner) const {
  std::vector<Line> lines;
  if (numbers_ == nullptr || unit.empty() || &owner == numbers_) return lines;
  for (const auto& [key, value] : numbers_->items()) {
    if (value.is_number() && unit_in(key) == unit) lines.push_back({words(key), &value, false});
  }
  return lines;
}

bool is_told_elsewhere(const Json& owner, std::string_view key) {
  if (key == "baseline" || key == "verdict" || key == "verdicts") return true;
  if ((key == "samples" || key == "values") && member(owner, key)->is_object()) {
    return std::ranges::any_of(owner, [&](const Json& sibling) {
      return sibling.is_object() && is_statistic_map(sibling) && sibling.contains(member(owner, key)->begin().key()) &&
             member(owner, key)->front().is_array() && is_number_array(member(owner, key)->front());
    });
  }
  return false;
}

namespace {

bool is_ratio_unit(const std::string& unit) { return unit == "ratio" || unit.find(" / ") != std::string::npos; }

/// A statistic without siblings, samples and limit: a fact, for which a plot would be too much.
bool is_single(const Json& owner, const std::string& key, const Around& around) {
  const auto statistic = as_statistic(owner.at(key));
  if (!statistic || !statistic->samples.empty() || is_told_elsewhere(owner, key)) return false;
  const std::string unit = unit_of(key, around.unit);
  if (is_ratio_unit(unit) && !around.limits.empty()) return false;
  return std::ranges::none_of(owner.items(), [&](const auto& item) {
    return item.key() != key && as_statistic(item.value()) && unit_of(item.key(), around.unit) == unit;
  });
}

std::string words_to_key(std::string text) {
  std::ranges::replace(text, ' ', '_');
  return text;
}

std::string title_of(const Around& around, const std::vector<NamedStatistic>& statistics) {
  return statistics.size() == 1 ? around.title + ": " + statistics.front().name : around.title;
}

/// The owner's limit and the machine's ceilings in this unit.
std::vector<Line> lines_in(const std::string& unit, const Json& owner, const Around& around, const Ceilings& ceilings) {
  std::vector<Line> lines;
  if (!member(owner, "ratio") && member(owner, "limit")) lines = around.limits;
  std::ranges::copy(ceilings.in(unit, owner), std::back_inserter(lines));
  return lines;
}

}  // namespace

std::string scalars(const Json& value, const Around& around, bool root, Charts& charts) {
  Json plain = Json::object();
  std::map<std::string, std::vector<std::pair<std::string, const Json*>>> by_unit;
  for (const auto& [key, inner] : value.items()) {
    if (!is_scalar(inner) || (root && is_head_key(key)) || is_among(key, kTexts) || is_verdict_word_key(key)) continue;
    if (key == "unit" || key == "limit_is" || (!root && (key == "name" || key == "figure"))) continue;
    plain[key] = inner;
    const std::string unit = unit_in(key).empty() ? unit_in(words_to_key(around.title)) : unit_in(key);
    if (!root && inner.is_number() && !unit.empty() && key != "count") by_unit[unit].emplace_back(words(key), &inner);
  }
  for (const auto& [key, inner] : value.items()) {
    if (is_single(value, key, around)) plain[key] = inner;
  }
  std::string html = plain.empty() ? "" : facts(plain);
  if (root) html = section("Settings and circumstances", around.level, html);
  std::string drawn;
  for (const auto& [unit, bars] : by_unit) {
    if (bars.size() < 2) continue;
    Chart chart{.title = around.title, .unit = unit, .series = {}, .rows = {}, .lines = {}};
    for (const auto& [name, number] : bars) chart.rows.push_back(bar(name, *number));
    drawn += charts.draw(chart);
  }
  return drawn.empty() ? html : "<div class=\"pair\">\n" + drawn + html + "</div>\n";
}

std::string lone_statistics(const Json& value, const Around& around, Charts& charts) {
  std::vector<std::pair<std::string, std::vector<NamedStatistic>>> groups;
  for (const auto& [key, inner] : value.items()) {
    const auto statistic = as_statistic(inner);
    if (!statistic || is_told_elsewhere(value, key) || is_single(value, key, around)) continue;
    const std::string unit = unit_of(key, around.unit);
    auto group = std::ranges::find(groups, unit, [](const auto& g) { return g.first; });
    if (group == groups.end()) group = groups.insert(groups.end(), {unit, {}});
    group->second.push_back({words(key), *statistic});
  }
  std::string html;
  for (auto& [unit, statistics] : groups) {
    Chart chart{.title = title_of(around, statistics), .unit = unit, .series = {}, .rows = {}, .lines = {}};
    for (const NamedStatistic& named : statistics) {
      chart.rows.push_back({named.name, role_of(named.name), {mark_of(named.statistic)}});
    }
    if (is_ratio_unit(unit)) chart.lines = around.limits;
    html += pair(charts.draw(chart), draw(table_of(caption(chart.title, unit), statistics)));
  }
  return html;
}

std::string statistic_map(const Json& owner, const std::string& key, const Json& map, const Around& around,
                          const Ceilings& ceilings, Charts& charts) {
  const std::string unit = is_ratio(key) ? unit_of(key, around.unit) : around.unit;
  Chart chart{
      .title = around.title, .unit = unit, .series = {}, .rows = {}, .lines = lines_in(unit, owner, around, ceilings)};
  if (is_ratio(key)) chart.lines = around.limits;
  std::vector<NamedStatistic> statistics;
  const Json* samples = member(owner, "samples");
  std::vector<std::string> names;
  for (const auto& item : map.items()) names.push_back(words(item.key()));
  const std::string common = without_common_parts(names);
  for (const auto& [name, inner] : map.items()) {
    statistics.push_back({names[statistics.size()], *as_statistic(inner)});
    Statistic& statistic = statistics.back().statistic;
    const Json* own = samples == nullptr ? nullptr : member(*samples, name);
    if (own != nullptr && statistic.samples.empty() && is_number_array(*own)) statistic.samples = numbers(*own);
    chart.rows.push_back({statistics.back().name, role_of(name), {mark_of(statistic)}});
  }
  if (const Json* baseline = member(owner, "baseline"); baseline != nullptr && key == "setups") {
    if (const auto statistic = as_statistic(*baseline)) {
      const std::string setup = string_member(*baseline, "setup");
      statistics.push_back({setup.empty() ? "baseline" : "baseline: " + setup, *statistic});
      chart.rows.push_back({statistics.back().name, Role::peer, {mark_of(*statistic)}});
    }
  }
  return all_have(common) + pair(charts.draw(chart), draw(table_of(caption(chart.title, unit), statistics)));
}

std::string number_array(const Json& array, const Around& around, Charts& charts) {
  Chart chart{.title = around.title, .unit = around.unit, .series = {}, .rows = {}, .lines = {}};
  Mark mark;
  mark.samples = numbers(array);
  chart.rows.push_back({around.title, Role::subject, {mark}});
  std::string text;
  for (const Json& number : array) text += (text.empty() ? "" : ", ") + data(number);
  return charts.draw(chart) + folded("the numbers", "<p>" + text + "</p>\n");
}

}  // namespace warpline::page
