// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "page/document/shape.h"
#include "page/text/json.h"

namespace warpline::page {

/// `Table` is a table of HTML cells; the first of each row is its heading.
struct Table {
  std::string caption;                         ///< not HTML
  std::vector<std::string> headings;           ///< not HTML
  std::vector<std::vector<std::string>> rows;  ///< HTML
};

/// `draw` returns the table in a box of its own, which scrolls if the table is wider or longer than it.
[[nodiscard]] std::string draw(const Table& table);

/// `cell` returns what a table shows of a leaf: a statistic as "median [low, high]", strings of a verdict as a badge.
[[nodiscard]] std::string cell(std::string_view key, const Json& value);

/// `facts` returns the scalars and short lists of an object as a description list; objects in it are lists of their
/// own.
[[nodiscard]] std::string facts(const Json& object);

/// `NamedStatistic` is a statistic under its name.
struct NamedStatistic {
  std::string name;
  Statistic statistic;
};
/// One statistic a row, with all that is known of it.
[[nodiscard]] Table table_of(std::string caption, const std::vector<NamedStatistic>& statistics);

/// `Record` is a row of a table: its label, and the leaves of an object.
struct Record {
  std::string label;
  std::vector<Leaf> leaves;
};
/// `RecordTable` is a table of records, and what all of them have in common.
struct RecordTable {
  Table table;
  std::vector<Leaf> common;  ///< leaves that are the same in all rows, if there are at least two
};
/// Columns are the records' leaves, in the order in which they first occur.
[[nodiscard]] RecordTable table_of(std::string caption, std::string first_heading, const std::vector<Record>& records);

}  // namespace warpline::page
