// SPDX-License-Identifier: Apache-2.0
#include "warpline/inspect/pattern_set.h"

#include <gtest/gtest.h>

#include "warpline/inspect/inspect_testing.h"

namespace warpline::inspect {
namespace {

std::vector<std::uint64_t> count(const PatternSet& set, std::string_view text) {
  std::vector<std::uint64_t> counts(set.patterns());
  scan(set.table(), 0, bytes_of(text), text.size(), [&](std::uint32_t pattern) { ++counts[pattern]; });
  return counts;
}

TEST(PatternSet, FindsPatternsInsideOfOthers) {
  const std::vector<std::string> patterns = {"he", "she", "his", "hers", "e"};
  auto set = PatternSet::create(patterns);
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(count(*set, "ushers and she hers"), (std::vector<std::uint64_t>{3, 2, 0, 2, 3}));
}

TEST(PatternSet, FindsWhatLookingAtEveryPlaceFinds) {
  Random random(2);
  for (int run = 0; run < 500; ++run) {
    const std::uint64_t letters = 1 + random.below(4);
    const std::vector<std::string> patterns =
        random_patterns(random, 1 + random.below(12), 1 + random.below(9), letters);
    const std::string text = random_text(random, random.below(300), letters);
    auto set = PatternSet::create(patterns);
    ASSERT_TRUE(set.ok());
    ASSERT_EQ(count(*set, text), count_one_by_one(text, patterns)) << text;
  }
}

TEST(PatternSet, PartsInAnyOrderFindWhatTheWholeDoes) {
  Random random(3);
  for (int run = 0; run < 500; ++run) {
    const std::vector<std::string> patterns = random_patterns(random, 8, 1 + random.below(20), 2);
    const std::string text = random_text(random, 1 + random.below(400), 2);
    auto set = PatternSet::create(patterns);
    ASSERT_TRUE(set.ok());
    const PatternTable table = set->table();
    // Two pieces, with a state between them, each in parts, the last one first.
    const std::size_t cut = random.below(text.size() + 1);
    std::vector<std::uint64_t> counts(patterns.size());
    std::uint16_t state = 0;
    for (const std::string_view piece : {std::string_view(text).substr(0, cut), std::string_view(text).substr(cut)}) {
      const std::uint64_t span = 1 + random.below(30);
      std::uint16_t behind = state;
      for (std::uint64_t part = (piece.size() + span - 1) / span; part-- > 0;) {
        const std::uint64_t end = std::min<std::uint64_t>((part + 1) * span, piece.size());
        const std::uint16_t last = scan_part(table, part_of(table, part * span, end), state, bytes_of(piece),
                                             [&](std::uint32_t pattern) { ++counts[pattern]; });
        if (end == piece.size()) behind = last;
      }
      ASSERT_EQ(behind, scan(table, state, bytes_of(piece), piece.size(), [](std::uint32_t) {}));
      state = behind;
    }
    ASSERT_EQ(counts, count_one_by_one(text, patterns)) << text;
  }
}

TEST(PatternSet, OfAllBytes) {
  std::vector<std::string> patterns;
  std::string text;
  for (int value = 0; value < 256; ++value) {
    patterns.emplace_back(1, static_cast<char>(value));
    text += static_cast<char>(value);
  }
  auto set = PatternSet::create(patterns);
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(count(*set, text), std::vector<std::uint64_t>(256, 1));
}

TEST(PatternSet, EqualPatternsHaveTheNumberOfTheFirst) {
  auto set = PatternSet::create(std::vector<std::string>{"ab", "ab"});
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(count(*set, "abab"), (std::vector<std::uint64_t>{2, 0}));
}

TEST(PatternSet, RefusesWhatMakesNoSense) {
  EXPECT_FALSE(PatternSet::create({}).ok());
  EXPECT_FALSE(PatternSet::create(std::vector<std::string>{"a", ""}).ok());
  EXPECT_FALSE(PatternSet::create(std::vector<std::string>(66, std::string(1000, 'a'))).ok());
}

}  // namespace
}  // namespace warpline::inspect
