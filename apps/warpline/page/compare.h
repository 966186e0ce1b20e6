// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "page/document/document.h"

namespace warpline::page {

/// `comparisons` returns a section in which the documents of one subject stand side by side, oldest first; "" if there
/// are none. Where a run before was on the same machine, each median has its ratio to it. Runs on other machines stand
/// beside without: their absolute speeds say nothing about each other.
[[nodiscard]] std::string comparisons(const std::vector<Document>& documents);

}  // namespace warpline::page
