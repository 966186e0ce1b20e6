// SPDX-License-Identifier: Apache-2.0
#include "page/body/pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "page/text/markup.h"

namespace warpline::page {

constexpr int kDeepestHeading = 6;

Charts::Charts(std::string document) : document_(std::move(document)) {}

std::string Charts::draw(const Chart& chart) { return page::draw(chart, fmt::format("{}-{}", document_, ++drawn_)); }

std::string section(const std::string& title, int level, const std::string& content) {
  if (content.empty()) return "";
  const int number = std::min(level, kDeepestHeading);
  return fmt::format("<section>\n<h{0}>{1}</h{0}>\n{2}</section>\n", number, escape(title), content);
}

std::string folded(const std::string& title, const std::string& content) {
  return content.empty() ? "" : "<details>\n<summary>" + escape(title) + "</summary>\n" + content + "</details>\n";
}

std::string pair(const std::string& charts, const std::string& table) {
  return charts.empty() ? table : "<div class=\"pair\">\n" + charts + table + "</div>\n";
}

std::string caption(const std::string& title, const std::string& unit) {
  return unit.empty() ? title : title + ", " + unit;
}

std::string all_have(const std::string& common) {
  return common.empty() ? "" : "<p class=\"common\">All: " + escape(common) + "</p>\n";
}

Row bar(const std::string& name, const Json& number) {
  Mark mark;
  mark.value = number.get<double>();
  mark.number = &number;
  return {name, Role::subject, {mark}};
}

}  // namespace warpline::page
