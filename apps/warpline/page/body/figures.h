// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "page/body/pieces.h"
#include "page/draw/chart.h"
#include "page/text/json.h"

// Numbers and statistics that are no rows of a table of records: as facts, bars, and plots with their table.

namespace warpline::page {

/// `kTexts` are the keys of sentences, which stand above the figures and are no facts.
inline constexpr std::string_view kTexts[] = {"what", "question", "title", "note", "source", "why"};

/// `Ceilings` has the most that the machine can do, as a document says it: lines in the charts of the same unit. It
/// refers to the document.
class Ceilings {
 public:
  explicit Ceilings(const Json& document);
  /// `in` returns the lines for a chart of this unit; none for the figures of `owner` if that is the ceilings.
  [[nodiscard]] std::vector<Line> in(const std::string& unit, const Json& owner) const;

 private:
  const Json* numbers_ = nullptr;
};

/// True for members that are told elsewhere: samples and baselines in the charts of what they belong to, verdicts in
/// the document's head.
[[nodiscard]] bool is_told_elsewhere(const Json& owner, std::string_view key);

/// `scalars` returns the scalars of an object as facts, and numbers of one unit also as bars.
std::string scalars(const Json& value, const Around& around, bool root, Charts& charts);

/// `lone_statistics` returns the statistics that are members themselves, in one chart for each unit.
std::string lone_statistics(const Json& value, const Around& around, Charts& charts);

/// `statistic_map` returns `map`, the member `key` of `owner`, as one chart with its table.
std::string statistic_map(const Json& owner, const std::string& key, const Json& map, const Around& around,
                          const Ceilings& ceilings, Charts& charts);

/// `number_array` returns numbers as dots of one row, and in full.
std::string number_array(const Json& array, const Around& around, Charts& charts);

}  // namespace warpline::page
