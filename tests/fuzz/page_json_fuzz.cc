// SPDX-License-Identifier: Apache-2.0
// Any bytes as the files of a page: either the error says what, why and what to do, or the page has none of the bytes
// as markup, and every tag that must be closed is.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "page/page.h"

namespace {

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<warpline::page::Document> documents;
  for (int i = 0; i < 2; ++i) {
    // The rest of a result around the bytes makes more of them reach the drawing.
    const std::string whole =
        i == 0 ? std::string(text) : R"({"benchmark":"b","command":"c","rows":)" + std::string(text) + "}";
    auto document = warpline::page::read_document(whole, "fuzz.json");
    if (document.ok()) {
      documents.push_back(*std::move(document));
      continue;
    }
    const warpline::Error& error = document.error();
    require(error.kind == warpline::ErrorKind::usage && error.what == "cannot draw 'fuzz.json'");
    require(!error.why.empty() && !error.fix.empty());
  }
  if (documents.empty()) return 0;
  const std::string html = warpline::page::page(documents);
  require(html == warpline::page::page(documents));
  require(count(html, "<script") == 0);
  for (const char* tag :
       {"section", "article", "div", "table", "figure", "svg", "details", "dl", "ul", "span", "data", "code", "g"}) {
    const std::string open = "<" + std::string(tag);
    require(count(html, open + ">") + count(html, open + " ") == count(html, "</" + std::string(tag) + ">"));
  }
  for (const char c : html) require(static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t');
  return 0;
}
