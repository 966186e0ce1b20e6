// SPDX-License-Identifier: Apache-2.0
#include "warpline/inspect/pattern_set.h"

#include <fmt/format.h>

#include <algorithm>

namespace warpline::inspect {

Result<PatternSet> PatternSet::create(std::span<const std::string> patterns) {
  if (patterns.empty()) return usage_error("cannot search", "there are no patterns", "give one or more");
  std::size_t bytes = 1;
  for (const std::string& pattern : patterns) {
    if (pattern.empty()) return usage_error("cannot search for a pattern", "it is empty", "leave it out");
    bytes += pattern.size();
  }
  if (bytes > kMostStates) {
    return usage_error(fmt::format("cannot search for {} patterns at once", patterns.size()),
                       fmt::format("they have {} bytes in all", bytes - 1),
                       fmt::format("use sets of fewer than {} bytes", kMostStates));
  }
  PatternSet set;
  set.patterns_ = patterns.size();
  set.find_classes(patterns);
  set.next_.resize(set.class_count_);
  set.ends_.resize(1);
  for (std::size_t i = 0; i < patterns.size(); ++i) set.add(patterns[i], static_cast<std::uint16_t>(i + 1));
  set.link();
  return set;
}

PatternTable PatternSet::table() const {
  return {classes_.data(), next_.data(), ends_.data(), shorter_.data(), class_count_, longest_};
}

/// Bytes of no pattern are all the same to the automaton, so that its table is narrow.
void PatternSet::find_classes(std::span<const std::string> patterns) {
  std::vector<bool> used(256);
  for (const std::string& pattern : patterns) {
    longest_ = std::max(longest_, static_cast<std::uint32_t>(pattern.size()));
    for (const char c : pattern) used[static_cast<unsigned char>(c)] = true;
  }
  // With all 256 values in use none is left for the class of the others, and none is needed.
  std::uint32_t count = std::ranges::count(used, true) == 256 ? 0 : 1;
  for (std::size_t value = 0; value < used.size(); ++value) {
    if (used[value]) classes_[value] = static_cast<std::uint8_t>(count++);
  }
  class_count_ = count;
}

/// Adds the pattern to the tree; a successor of 0 is one that is not there.
void PatternSet::add(std::string_view pattern, std::uint16_t number) {
  std::size_t state = 0;
  for (const char c : pattern) {
    const std::size_t at = state * class_count_ + classes_[static_cast<unsigned char>(c)];
    if (next_[at] == 0) {
      next_[at] = static_cast<std::uint16_t>(ends_.size());
      ends_.push_back(0);
      next_.resize(next_.size() + class_count_);
    }
    state = next_[at];
  }
  if (ends_[state] == 0) ends_[state] = number;
}

/// Breadth first, so that where a state falls back to, which is nearer to the root, is complete before it.
void PatternSet::link() {
  std::vector<std::uint16_t> fallback(states());
  std::vector<std::uint16_t> order{0};
  shorter_.resize(states());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint16_t state = order[i];
    for (std::uint32_t c = 0; c < class_count_; ++c) {
      std::uint16_t& successor = next_[state * class_count_ + c];
      const std::uint16_t otherwise = state == 0 ? std::uint16_t{0} : next_[fallback[state] * class_count_ + c];
      if (successor == 0) {
        successor = otherwise;
        continue;
      }
      fallback[successor] = otherwise;
      order.push_back(successor);
    }
    // A state in which no pattern ends takes the place of the first one behind it in which some does.
    const std::uint16_t behind = fallback[state];
    if (ends_[state] == 0) {
      ends_[state] = ends_[behind];
      shorter_[state] = shorter_[behind];
    } else {
      shorter_[state] = ends_[behind] == 0 ? std::uint16_t{0} : behind;
    }
  }
}

}  // namespace warpline::inspect
