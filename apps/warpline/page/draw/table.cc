// SPDX-License-Identifier: Apache-2.0
#include "page/draw/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "page/document/verdict.h"
#include "page/text/markup.h"

namespace warpline::page {
namespace {

constexpr std::size_t kLongText = 40;

std::string interval(const Statistic& statistic) {
  return fmt::format("[{}, {}]", data(*statistic.low), data(*statistic.high));
}

bool is_command(std::string_view key) { return key.ends_with("command") || key.ends_with("setting"); }

std::string last_key(const std::string& path) { return path.substr(path.rfind('.') + 1); }

}  // namespace

// The end tags of rows and cells are optional in HTML, and there are many of them.
std::string draw(const Table& table) {
  std::string html = fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">\n<table>\n<caption>{0}"
      "</caption>\n<thead><tr>",
      escape(table.caption));
  for (const std::string& heading : table.headings) html += "<th scope=\"col\">" + escape(heading);
  html += "\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) html += (i == 0 ? "<th scope=\"row\">" : "<td>") + row[i];
    html += "\n";
  }
  return html + "</table>\n</div>\n";
}

std::string cell(std::string_view key, const Json& value) {
  if (const auto statistic = as_statistic(value)) {
    std::string text = data(*statistic->median);
    if (statistic->low != nullptr) text += " <small>" + interval(*statistic) + "</small>";
    return text;
  }
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    if (is_verdict_word_key(key)) return badge(state_of(text), text);
    if (is_command(key)) return "<code>" + escape(text) + "</code>";
    return text.size() > kLongText ? "<span class=\"long\">" + escape(text) + "</span>" : escape(text);
  }
  if (value.is_boolean() && is_verdict_flag_key(key)) {
    return value.get<bool>() ? badge(State::met, "yes") : badge(State::missed, "no");
  }
  if (is_scalar(value)) return scalar(value);
  if (value.is_array()) {
    std::string text;
    for (const Json& element : value) text += (text.empty() ? "" : ", ") + cell("", element);
    return value.size() > 4 || text.size() > 4 * kLongText ? "<details><summary>list</summary>" + text + "</details>"
                                                           : text;
  }
  return value.empty() ? "<span class=\"none\">none</span>" : "<code>" + escape(value.dump()) + "</code>";
}

Table table_of(std::string caption, const std::vector<NamedStatistic>& statistics) {
  const auto any = [&](auto has) {
    return std::ranges::any_of(statistics, [&](const NamedStatistic& named) { return has(named.statistic); });
  };
  const bool intervals = any([](const Statistic& s) { return s.low != nullptr; });
  const bool extremes = any([](const Statistic& s) { return s.least != nullptr && s.most != nullptr; });
  const Json* first_count = statistics.empty() ? nullptr : statistics.front().statistic.count;
  const bool same_counts = first_count != nullptr &&
                           !any([&](const Statistic& s) { return s.count == nullptr || *s.count != *first_count; });
  const bool counts = !same_counts && any([](const Statistic& s) { return s.count != nullptr; });
  if (same_counts) caption += ", each of " + rounded(*first_count) + " samples";
  Table table;
  table.caption = std::move(caption);
  table.headings.reserve(6);  // without it GCC 14 warns of an access outside the array, which there is not
  table.headings.assign({"", "median"});
  if (intervals) {
    const auto first =
        std::ranges::find_if(statistics, [](const NamedStatistic& n) { return n.statistic.low != nullptr; });
    table.headings.emplace_back(first->statistic.interval_name);
  }
  if (extremes) table.headings.insert(table.headings.end(), {"least", "most"});
  if (counts) table.headings.emplace_back("samples");
  for (const auto& [name, statistic] : statistics) {
    std::vector<std::string> row = {escape(name), data(*statistic.median)};
    const auto put = [&](const Json* number) { row.push_back(number == nullptr ? "" : data(*number)); };
    if (intervals) row.push_back(statistic.low == nullptr ? "" : interval(statistic));
    if (extremes) {
      put(statistic.least);
      put(statistic.most);
    }
    if (counts) put(statistic.count);
    table.rows.push_back(std::move(row));
  }
  return table;
}

RecordTable table_of(std::string caption, std::string first_heading, const std::vector<Record>& records) {
  RecordTable result{{std::move(caption), {std::move(first_heading)}, {}}, {}};
  std::vector<std::string> paths;
  std::map<std::string, std::vector<const Json*>> columns;
  for (std::size_t i = 0; i < records.size(); ++i) {
    for (const Leaf& leaf : records[i].leaves) {
      const auto [column, is_new] = columns.try_emplace(leaf.path, records.size());
      if (is_new) paths.push_back(leaf.path);
      column->second[i] = leaf.value;
    }
  }
  const auto is_common = [&](const std::string& path) {
    const std::vector<const Json*>& values = columns.at(path);
    return records.size() > 1 && std::ranges::all_of(values, [&](const Json* value) {
             return value != nullptr && *value == *values.front() && !as_statistic(*value) &&
                    !is_verdict_flag_key(last_key(path)) && !is_verdict_word_key(last_key(path));
           });
  };
  std::vector<std::string> shown;
  for (const std::string& path : paths) {
    if (is_common(path)) {
      result.common.push_back({path, columns.at(path).front()});
    } else {
      shown.push_back(path);
    }
  }
  if (shown.empty()) {
    shown = paths;
    result.common.clear();
  }
  // Commands are long; what one looks for comes first.
  const auto commands = [](const std::string& path) { return is_command(path); };
  std::vector<std::string> last;
  std::ranges::copy_if(shown, std::back_inserter(last), commands);
  std::erase_if(shown, commands);
  shown.insert(shown.end(), last.begin(), last.end());
  for (const std::string& path : shown) {
    std::string heading = words(path);
    std::ranges::replace(heading, '.', ' ');
    result.table.headings.push_back(std::move(heading));
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    std::vector<std::string> row = {escape(records[i].label)};
    for (const std::string& path : shown) {
      const Json* value = columns.at(path)[i];
      row.push_back(value == nullptr ? "" : cell(last_key(path), *value));
    }
    result.table.rows.push_back(std::move(row));
  }
  return result;
}

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

}  // namespace warpline::page
