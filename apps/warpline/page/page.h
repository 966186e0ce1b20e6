// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "page/document/document.h"

namespace warpline::page {

/// `page` returns one self-contained HTML page about the documents: verdicts first, then runs compared with runs
/// before, then each document. It depends on nothing but the documents; the same ones in the same order give the same
/// bytes. It sets the documents' ids.
[[nodiscard]] std::string page(std::vector<Document>& documents);

/// The style sheet of the page.
[[nodiscard]] const char* style();

}  // namespace warpline::page
