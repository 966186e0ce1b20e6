// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "page/draw/chart.h"
#include "page/text/json.h"

// What all parts of a document's body are made of.

namespace warpline::page {

/// `Around` is what is known around a piece of JSON.
struct Around {
  std::string title;         ///< of the section
  std::string unit;          ///< "" if none is said
  std::vector<Line> limits;  ///< of the figures here
  int level = 3;             ///< of the section's heading
};

/// `Charts` draws a document's charts, under ids that are unique in the page.
class Charts {
 public:
  /// `document` is the id of the document.
  explicit Charts(std::string document);
  /// `draw` returns the chart as HTML; "" for one without values.
  std::string draw(const Chart& chart);

 private:
  std::string document_;
  int drawn_ = 0;
};

/// `section` returns the content below a heading; "" without content.
[[nodiscard]] std::string section(const std::string& title, int level, const std::string& content);

/// `folded` returns the content to be unfolded by the reader; "" without content.
[[nodiscard]] std::string folded(const std::string& title, const std::string& content);

/// `pair` returns charts beside their table; the table alone if there are no charts.
[[nodiscard]] std::string pair(const std::string& charts, const std::string& table);

/// `caption` returns the title with the unit, if there is one.
[[nodiscard]] std::string caption(const std::string& title, const std::string& unit);

/// `all_have` returns a paragraph that says what the names of all rows have in common; "" if that is nothing.
[[nodiscard]] std::string all_have(const std::string& common);

/// `bar` returns a chart's row with a plain number, which the row refers to.
[[nodiscard]] Row bar(const std::string& name, const Json& number);

}  // namespace warpline::page
