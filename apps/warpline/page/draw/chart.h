// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "page/document/shape.h"
#include "page/text/json.h"

namespace warpline::page {

/// `Role` is what a mark stands for; each has its colour and its form.
enum class Role : std::uint8_t {
  subject,  ///< what was measured
  peer,     ///< what it is compared with
  control,  ///< the peer or subject once more, which shows how much chance there is
};

/// `role_of` tells the role from the names that benchmarks give their contenders.
[[nodiscard]] Role role_of(std::string_view name);

/// `Mark` is one value in a row.
struct Mark {
  double value = 0;
  std::optional<double> low, high;  ///< of the interval
  std::vector<double> samples;      ///< drawn if the mark is alone in its row
  std::size_t series = 0;           ///< index into Chart::series; 0 if there are none
  const Json* number = nullptr;     ///< written at the row's end if the mark is alone in it; null: only samples
};

/// `mark_of` returns the mark of a statistic.
[[nodiscard]] Mark mark_of(const Statistic& statistic, std::size_t series = 0);

struct Row {
  std::string label;
  Role role = Role::subject;
  std::vector<Mark> marks;
};

/// `Line` is a value to compare all rows with: a limit, or a ceiling that the machine sets.
struct Line {
  std::string label;
  const Json* value;
  bool is_limit;
};

/// `Chart` is a plot of rows along one axis: a dot for a median, a bar for its interval, small dots for samples.
struct Chart {
  std::string title;
  std::string unit;
  std::vector<std::string> series;  ///< names of the marks of a row, if it has several
  std::vector<Row> rows;
  std::vector<Line> lines;
};

/// `draw` returns a <figure> with the chart as SVG. `id` is unique in the page. Without a row that has a value it is
/// "".
[[nodiscard]] std::string draw(const Chart& chart, const std::string& id);

/// `symbols` returns the definitions that charts refer to. They are in the page once, before its first chart.
[[nodiscard]] std::string symbols();
/// `symbol` returns the small picture of a series, for text.
[[nodiscard]] std::string symbol(std::size_t series);
/// `symbol` of a role.
[[nodiscard]] std::string symbol(Role role);

}  // namespace warpline::page
