// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "page/body/pieces.h"
#include "page/draw/table.h"
#include "page/text/json.h"

namespace warpline::page {

/// `records_html` returns a table of records, with a chart for each of their statistics and, without any, for their
/// fractions. `rows` is what the records were made of, in their order, if "values" beside a "figure" are its samples;
/// otherwise null.
std::string records_html(std::vector<Record> records, const Around& around, const Json* rows, Charts& charts);

/// `sibling_records` returns members such as "rx" and "tx" that are small objects of the same keys, each such set as
/// one table, and adds them to `told`.
std::string sibling_records(const Json& value, const Around& around, bool root, Charts& charts,
                            std::set<const Json*>& told);

}  // namespace warpline::page
