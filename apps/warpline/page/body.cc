// SPDX-License-Identifier: Apache-2.0
#include "page/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "page/chart.h"
#include "page/markup.h"
#include "page/names.h"
#include "page/shape.h"
#include "page/table.h"
#include "page/unit.h"
#include "page/verdict.h"

namespace warpline::page {
namespace {

constexpr int kDeepestHeading = 6;
constexpr std::size_t kMostBars = 40;  ///< rows of a chart of plain numbers
constexpr std::size_t kMostPlain = 2;  ///< charts of plain numbers for one table
constexpr std::string_view kTexts[] = {"what", "question", "title", "note", "source", "why"};
/// Members of a document that are long and of interest to few.
constexpr std::string_view kFolded[] = {"config", "commands", "checks",   "samples", "report",
                                        "stderr", "proof",    "verified", "lcores"};

/// What is known around a piece of JSON.
struct Around {
  std::string title;         ///< of the section
  std::string unit;          ///< "" if none is said
  std::vector<Line> limits;  ///< of the figures here
  int level = 3;             ///< of the section's heading
};

std::string section(const std::string& title, int level, const std::string& content) {
  if (content.empty()) return "";
  const int number = std::min(level, kDeepestHeading);
  return fmt::format("<section>\n<h{0}>{1}</h{0}>\n{2}</section>\n", number, escape(title), content);
}

std::string folded(const std::string& title, const std::string& content) {
  return content.empty() ? "" : "<details>\n<summary>" + escape(title) + "</summary>\n" + content + "</details>\n";
}

class Body {
 public:
  explicit Body(const Document& document) : document_(document) {
    if (const Json* units = member(document.json, "units"); units != nullptr && units->is_object()) units_ = units;
    if (const Json* ceilings = member(document.json, "ceilings"); ceilings != nullptr && ceilings->is_object()) {
      for (const auto& [key, value] : ceilings->items()) {
        if (value.is_number()) ceilings_.push_back({words(key), &value, false});
      }
      ceiling_keys_ = ceilings;
    }
  }

  std::string html() {
    Around around{.title = document_.title, .unit = string_member(document_.json, "unit"), .limits = {}, .level = 3};
    return object(document_.json, around, true);
  }

 private:
  std::string next_id() { return fmt::format("{}-{}", document_.id, ++charts_); }

  std::string object(const Json& value, Around around, bool root) {
    if (const std::string unit = string_member(value, "unit"); !unit.empty()) around.unit = unit;
    const Json* limit = member(value, "limit");
    if (limit != nullptr && limit->is_number()) {
      const std::string side = string_member(value, "limit_is");
      around.limits = {{side.empty() ? "limit" : "limit, at " + side, limit, true}};
    }
    std::string html = texts(value, root) + scalars(value, around, root) + lone_statistics(value, around);
    html += sibling_records(value, around, root);
    for (const auto& [key, inner] : value.items()) {
      if (is_scalar(inner) || as_statistic(inner) || (root && is_head_key(key)) || is_told_elsewhere(value, key))
        continue;
      html += member_html(value, key, inner, around);
    }
    return html;
  }

  /// Samples and baselines go into the charts of what they belong to; verdicts are told before.
  [[nodiscard]] bool is_told_elsewhere(const Json& owner, std::string_view key) const {
    if (key == "baseline" || key == "verdict" || key == "verdicts") return true;
    if ((key == "samples" || key == "values") && member(owner, key)->is_object()) {
      return std::ranges::any_of(owner, [&](const Json& sibling) {
        return sibling.is_object() && is_statistic_map(sibling) &&
               sibling.contains(member(owner, key)->begin().key()) && member(owner, key)->front().is_array() &&
               is_number_array(member(owner, key)->front());
      });
    }
    return told_.contains(member(owner, key));
  }

  std::string member_html(const Json& owner, const std::string& key, const Json& inner, const Around& around) {
    Around below = around;
    const bool named = !says_nothing(key);
    if (named) below.title = words(key);
    if (named) below.level = around.level + 1;
    below.unit = unit_of(key, around.unit);
    if (units_ != nullptr && !string_member(*units_, key).empty()) below.unit = string_member(*units_, key);
    std::string content;
    if (is_statistic_map(inner)) {
      content = statistic_map(owner, key, inner, below);
    } else if (is_record_map(inner)) {
      content = record_map(inner, below);
    } else if (is_object_array(inner)) {
      content = object_array(inner, below);
    } else if (is_number_array(inner)) {
      content = number_array(inner, below);
    } else if (inner.is_array()) {
      content = list(inner);
    } else if (inner.empty()) {
      content = "<p class=\"none\">none</p>\n";
    } else {
      content = object(inner, below, false);
    }
    if (!named) return content;
    return is_among(key, kFolded) ? folded(below.title, content) : section(below.title, around.level, content);
  }

  static std::string texts(const Json& value, bool root) {
    std::string html;
    for (const std::string_view key : kTexts) {
      const std::string text = string_member(value, key);
      if (!text.empty() && !(root && key == "title")) html += "<p>" + escape(text) + "</p>\n";
    }
    return html;
  }

  /// Scalars as facts; numbers of one unit also as bars.
  std::string scalars(const Json& value, const Around& around, bool root) {
    Json plain = Json::object();
    std::map<std::string, std::vector<std::pair<std::string, const Json*>>> by_unit;
    for (const auto& [key, inner] : value.items()) {
      if (!is_scalar(inner) || (root && is_head_key(key)) || is_among(key, kTexts) || is_verdict_word_key(key))
        continue;
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
    std::string charts;
    for (const auto& [unit, bars] : by_unit) {
      if (bars.size() < 2) continue;
      Chart chart{.title = around.title, .unit = unit, .series = {}, .rows = {}, .lines = {}};
      for (const auto& [name, number] : bars) chart.rows.push_back(bar(name, *number));
      charts += draw(chart, next_id());
    }
    return charts.empty() ? html : "<div class=\"pair\">\n" + charts + html + "</div>\n";
  }

  /// A statistic without siblings, samples and limit: a fact, for which a plot would be too much.
  [[nodiscard]] bool is_single(const Json& owner, const std::string& key, const Around& around) const {
    const auto statistic = as_statistic(owner.at(key));
    if (!statistic || !statistic->samples.empty() || is_told_elsewhere(owner, key)) return false;
    const std::string unit = unit_of(key, around.unit);
    if (is_ratio_unit(unit) && !around.limits.empty()) return false;
    return std::ranges::none_of(owner.items(), [&](const auto& item) {
      return item.key() != key && as_statistic(item.value()) && unit_of(item.key(), around.unit) == unit;
    });
  }

  static std::string words_to_key(std::string text) {
    std::ranges::replace(text, ' ', '_');
    return text;
  }

  static Row bar(const std::string& name, const Json& number) {
    Mark mark;
    mark.value = number.get<double>();
    mark.number = &number;
    return {name, Role::subject, {mark}};
  }

  /// The statistics that are members themselves, in one chart for each unit.
  std::string lone_statistics(const Json& value, const Around& around) {
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
      html += pair(draw(chart, next_id()), draw(table_of(caption(chart.title, unit), statistics)));
    }
    return html;
  }

  static bool is_ratio_unit(const std::string& unit) {
    return unit == "ratio" || unit.find(" / ") != std::string::npos;
  }

  static std::string title_of(const Around& around, const std::vector<NamedStatistic>& statistics) {
    return statistics.size() == 1 ? around.title + ": " + statistics.front().name : around.title;
  }

  static std::string caption(const std::string& title, const std::string& unit) {
    return unit.empty() ? title : title + ", " + unit;
  }

  static std::string pair(const std::string& charts, const std::string& table) {
    return charts.empty() ? table : "<div class=\"pair\">\n" + charts + table + "</div>\n";
  }

  /// The owner's limit and the machine's ceilings in this unit.
  [[nodiscard]] std::vector<Line> lines_in(const std::string& unit, const Json& owner, const Around& around) const {
    std::vector<Line> lines;
    if (!member(owner, "ratio") && member(owner, "limit")) lines = around.limits;
    if (ceiling_keys_ == nullptr) return lines;
    std::size_t i = 0;
    for (const auto& [key, value] : ceiling_keys_->items()) {
      if (!value.is_number()) continue;
      if (!unit.empty() && unit_in(key) == unit && &owner != ceiling_keys_) lines.push_back(ceilings_[i]);
      ++i;
    }
    return lines;
  }

  std::string statistic_map(const Json& owner, const std::string& key, const Json& map, const Around& around) {
    const std::string unit = is_ratio(key) ? unit_of(key, around.unit) : around.unit;
    Chart chart{.title = around.title, .unit = unit, .series = {}, .rows = {}, .lines = lines_in(unit, owner, around)};
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
    return all_have(common) + pair(draw(chart, next_id()), draw(table_of(caption(chart.title, unit), statistics)));
  }

  static std::string all_have(const std::string& common) {
    return common.empty() ? "" : "<p class=\"common\">All: " + escape(common) + "</p>\n";
  }

  std::string record_map(const Json& map, const Around& around) {
    if (!std::ranges::all_of(map, is_flat_record)) {
      std::string html;
      for (const auto& [key, inner] : map.items()) {
        Around below = around;
        below.title = words(key);
        below.level = around.level + 1;
        html += section(below.title, around.level, object(inner, below, false));
      }
      return html;
    }
    std::vector<Record> records;
    for (const auto& [key, inner] : map.items()) records.push_back({words(key), leaves(inner)});
    return records_html(records, around, &map);
  }

  /// A table of records, with a chart for each of their statistics and, without any, for their fractions.
  std::string records_html(std::vector<Record> records, const Around& around, const Json* rows) {
    std::vector<std::string> names;
    for (const Record& record : records) names.push_back(record.label);
    std::string common = all_have(without_common_parts(names));
    for (std::size_t i = 0; i < records.size(); ++i) records[i].label = names[i];
    std::vector<std::string> paths;
    bool statistics = false;
    for (const Record& record : records) {
      for (const Leaf& leaf : record.leaves) {
        if (as_statistic(*leaf.value)) statistics = true;
        if ((as_statistic(*leaf.value) || leaf.value->is_number_float()) && !is_among(leaf.path, paths))
          paths.push_back(leaf.path);
      }
    }
    std::string charts;
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
          const Json* record = rows == nullptr || path != "figure"
                                   ? nullptr
                                   : &*std::next(rows->begin(), static_cast<std::ptrdiff_t>(i));
          const Json* values = record == nullptr ? nullptr : member(*record, "values");
          if (values != nullptr && is_number_array(*values)) statistic->samples = numbers(*values);
          chart.rows.push_back({records[i].label, role_of(records[i].label), {mark_of(*statistic)}});
        } else if (!statistics && leaf->value->is_number()) {
          is_plain = true;
          chart.rows.push_back(bar(records[i].label, *leaf->value));
        }
      }
      if (chart.rows.size() < 2 || (is_plain && (chart.rows.size() > kMostBars || ++plain > kMostPlain))) continue;
      charts += draw(chart, next_id());
    }
    RecordTable table = table_of(caption(around.title, around.unit), "", records);
    if (!table.common.empty()) {
      Json shared = Json::object();
      for (const Leaf& leaf : table.common) shared[leaf.path] = *leaf.value;
      common += "<p class=\"common\">In all rows:</p>\n" + facts(shared);
    }
    const bool wide = charts.find("<figure") != charts.rfind("<figure") || table.table.headings.size() > 4;
    const std::string drawn = draw(table.table);
    if (charts.empty()) return common + drawn;
    return common + (wide ? "<div class=\"pair\">\n" + charts + "</div>\n" + drawn : pair(charts, drawn));
  }

  /// Members such as "rx" and "tx" that are small objects of the same keys share one table.
  std::string sibling_records(const Json& value, const Around& around, bool root) {
    std::string html;
    for (const auto& [key, inner] : value.items()) {
      if (!is_plain_record(inner) || (root && is_head_key(key)) || told_.contains(&inner)) continue;
      std::vector<Record> records;
      std::vector<const Json*> alike;
      for (const auto& [other_key, other] : value.items()) {
        if (!is_plain_record(other) || !same_keys(inner, other) || (root && is_head_key(other_key))) continue;
        records.push_back({words(other_key), leaves(other)});
        alike.push_back(&other);
      }
      if (records.size() < 2 || records.size() == value.size()) continue;
      told_.insert(alike.begin(), alike.end());
      Around below = around;
      below.title.clear();
      for (const Record& record : records) below.title += (below.title.empty() ? "" : ", ") + record.label;
      html += section(below.title, around.level, records_html(records, below, nullptr));
    }
    return html;
  }

  static bool is_plain_record(const Json& value) {
    return value.is_object() && !value.empty() && !as_statistic(value) && std::ranges::all_of(value, is_scalar);
  }

  static bool same_keys(const Json& a, const Json& b) {
    return a.size() == b.size() &&
           std::ranges::all_of(a.items(), [&](const auto& item) { return b.contains(item.key()); });
  }

  /// The key of a member that in every element maps names to records with statistics: columns of a row.
  static std::string series_key(const Json& array) {
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

  std::string object_array(const Json& array, const Around& around) {
    const std::vector<std::string> names = labels(array);
    if (const std::string key = series_key(array); !key.empty()) return series(array, key, names, around);
    if (!std::ranges::all_of(array, is_flat_record)) {
      std::string html;
      for (std::size_t i = 0; i < array.size(); ++i) {
        Around below = around;
        if (names[i].empty()) {
          html += object(array[i], below, false);
          continue;
        }
        below.title = names[i];
        below.level = around.level + 1;
        html += section(below.title, around.level, object(array[i], below, false));
      }
      return html;
    }
    std::vector<Record> records;
    for (std::size_t i = 0; i < array.size(); ++i) {
      Record record{names[i], leaves(array[i])};
      std::erase_if(record.leaves, [](const Leaf& leaf) { return leaf.path == "name"; });
      records.push_back(std::move(record));
    }
    return records_html(records, around, &array);
  }

  /// Rows that have the same figures for several contenders: a chart and a table for each figure.
  std::string series(const Json& array, const std::string& key, const std::vector<std::string>& names,
                     const Around& around) {
    std::vector<std::string> contenders, figures, published;
    for (const Json& element : array) {
      for (const auto& [contender, record] : element.at(key).items()) {
        if (!is_among(contender, contenders)) contenders.push_back(contender);
        for (const Leaf& leaf : leaves(record)) {
          if (as_statistic(*leaf.value) && !is_among(leaf.path, figures)) figures.push_back(leaf.path);
        }
      }
    }
    std::string html;
    for (const std::string& figure : figures) html += series_figure(array, key, names, around, contenders, figure);
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
    if (!std::ranges::all_of(rest, is_empty)) html += records_html(rest, around, nullptr);
    if (!std::ranges::all_of(inner, is_empty)) {
      Around below = around;
      below.title = around.title + ", " + words(key);
      below.unit.clear();
      html += folded("other values of each", records_html(inner, below, nullptr));
    }
    return html;
  }

  std::string series_figure(const Json& array, const std::string& key, const std::vector<std::string>& names,
                            const Around& around, const std::vector<std::string>& contenders,
                            const std::string& figure) {
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
    return pair(draw(chart, next_id()), draw(table));
  }

  static bool is_published(std::string_view key, const Json& peers, const std::string& unit) {
    return key.starts_with("published") && peers.is_object() && unit_in(key) == unit && !unit.empty();
  }

  static const Json* at_path(const Json& record, const std::string& path) {
    for (const Leaf& leaf : leaves(record)) {
      if (leaf.path == path) return leaf.value;
    }
    return nullptr;
  }

  std::string number_array(const Json& array, const Around& around) {
    Chart chart{.title = around.title, .unit = around.unit, .series = {}, .rows = {}, .lines = {}};
    Mark mark;
    mark.samples = numbers(array);
    chart.rows.push_back({around.title, Role::subject, {mark}});
    std::string text;
    for (const Json& number : array) text += (text.empty() ? "" : ", ") + data(number);
    return draw(chart, next_id()) + folded("the numbers", "<p>" + text + "</p>\n");
  }

  static std::string list(const Json& array) {
    if (array.empty()) return "<p class=\"none\">none</p>\n";
    std::string html = "<ul>\n";
    for (const Json& element : array) html += "<li>" + cell("", element) + "</li>\n";
    return html + "</ul>\n";
  }

  const Document& document_;
  const Json* units_ = nullptr;
  std::vector<Line> ceilings_;
  const Json* ceiling_keys_ = nullptr;
  std::set<const Json*> told_;
  int charts_ = 0;
};

}  // namespace

std::string facts(const Json& object) {
  std::string html = "<dl class=\"facts\">\n";
  for (const auto& [key, value] : object.items()) {
    html += "<div><dt>" + escape(words(key)) + "</dt><dd>";
    if (value.is_object() && !as_statistic(value)) {
      std::string parts;
      for (const Leaf& leaf : leaves(value)) {
        parts += (parts.empty() ? "" : ", ") + escape(words(leaf.path)) + " " + cell("", *leaf.value);
      }
      html += parts.empty() ? "<span class=\"none\">none</span>" : parts;
    } else {
      html += cell(key, value);
    }
    html += "</dd></div>\n";
  }
  return html + "</dl>\n";
}

std::string body(const Document& document) { return Body(document).html(); }

}  // namespace warpline::page
