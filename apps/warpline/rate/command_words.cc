// SPDX-License-Identifier: Apache-2.0
#include "rate/command_words.h"

#include <fmt/format.h>

#include <utility>

namespace warpline::rate {

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;  // a word, perhaps an empty one in quotes
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (quote == 0 && blank) {
      inside = false;
      continue;
    }
    if (!std::exchange(inside, true)) words.emplace_back();
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      words.back() += text[++i];
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote != 0 && c == quote) {
      quote = 0;
    } else {
      words.back() += c;
    }
  }
  if (quote == 0) return words;
  return usage_error(fmt::format("cannot use '{}'", text), fmt::format("the quote {} is not closed", quote),
                     "close it");
}

}  // namespace warpline::rate
