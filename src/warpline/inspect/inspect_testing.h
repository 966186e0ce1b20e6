// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/inspect/pattern_set.h"

namespace warpline::inspect {

/// Returns so many letters of an alphabet of so many, so that short patterns are found often.
inline std::string random_text(Random& random, std::size_t length, std::uint64_t letters) {
  std::string text(length, 'a');
  for (char& c : text) c = static_cast<char>('a' + random.below(letters));
  return text;
}

/// Returns patterns with none twice.
inline std::vector<std::string> random_patterns(Random& random, std::size_t count, std::uint64_t longest,
                                                std::uint64_t letters) {
  std::vector<std::string> patterns;
  for (std::size_t i = 0; i < count; ++i) {
    std::string pattern = random_text(random, 1 + random.below(longest), letters);
    if (std::find(patterns.begin(), patterns.end(), pattern) == patterns.end()) patterns.push_back(std::move(pattern));
  }
  return patterns;
}

/// Returns how often each pattern is in the text, by looking at every place for each.
inline std::vector<std::uint64_t> count_one_by_one(std::string_view text, const std::vector<std::string>& patterns) {
  std::vector<std::uint64_t> counts(patterns.size());
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    for (std::size_t at = text.find(patterns[p]); at != std::string_view::npos; at = text.find(patterns[p], at + 1)) {
      ++counts[p];
    }
  }
  return counts;
}

inline const std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

}  // namespace warpline::inspect
