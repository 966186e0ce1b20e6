// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "page/document/document.h"

namespace warpline::page {

/// `body` returns all of a document below its head as HTML: sections, tables and charts by the shape of its JSON.
[[nodiscard]] std::string body(const Document& document);

}  // namespace warpline::page
