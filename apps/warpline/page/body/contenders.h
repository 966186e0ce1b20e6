// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "page/body/pieces.h"
#include "page/text/json.h"

// Rows that have the same figures for several contenders.

namespace warpline::page {

/// `contenders_key` returns the key of a member that in every element maps names to records with statistics: columns of
/// a row. "" if there is none.
[[nodiscard]] std::string contenders_key(const Json& array);

/// `contenders_html` returns a chart and a table for each figure of the contenders under `key`, and a table of what
/// else the rows have. `names` are those of the rows.
std::string contenders_html(const Json& array, const std::string& key, const std::vector<std::string>& names,
                            const Around& around, Charts& charts);

}  // namespace warpline::page
