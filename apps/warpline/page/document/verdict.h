// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "page/document/document.h"

namespace warpline::page {

enum class State : std::uint8_t { met, missed, neutral };

/// `state_of` tells what a word such as "pass" or "refused" means for a verdict.
[[nodiscard]] State state_of(std::string_view word);
/// True for keys whose strings are verdicts: "verdict", "outcome", ...
[[nodiscard]] bool is_verdict_word_key(std::string_view key);
/// True for keys whose booleans are: "met", "passed", ...
[[nodiscard]] bool is_verdict_flag_key(std::string_view key);

/// `Verdict` is one judgement that a document makes, or what many alike come to.
struct Verdict {
  State state;
  std::string word;       ///< "met", "missed", or the file's own word
  std::string subject;    ///< what was judged; not HTML
  std::string evidence;   ///< HTML: figure and limit; may be empty
  std::string key;        ///< of the members that many were counted by; empty for one
  std::size_t count = 1;  ///< of judgements
};

/// Returns all verdicts of a document in the order of the file. Where there are more than sixteen under one key, such
/// as those of all runs of a matrix, they are counted by word, and only the missed ones are told one by one.
[[nodiscard]] std::vector<Verdict> verdicts_of(const Document& document);

/// The word of a state in a coloured box; its sign comes from the style sheet.
[[nodiscard]] std::string badge(State state, std::string_view word);

}  // namespace warpline::page
