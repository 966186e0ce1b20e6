// SPDX-License-Identifier: Apache-2.0
#include "rate/command_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"

namespace warpline::rate {
namespace {

using testing::ElementsAre;

std::vector<std::string> words(std::string_view text) {
  auto split = split_words(text);
  EXPECT_TRUE(split.ok()) << text;
  return split.ok() ? *split : std::vector<std::string>{};
}

TEST(CommandWords, AreThoseOfAShell) {
  EXPECT_THAT(words(""), ElementsAre());
  EXPECT_THAT(words("  forward\t--loopback\n"), ElementsAre("forward", "--loopback"));
  EXPECT_THAT(words("--eal '--log-level 8' --port=\"a b\",c"), ElementsAre("--eal", "--log-level 8", "--port=a b,c"));
  EXPECT_THAT(words(R"(a\ b '\' "\"" '' "")"), ElementsAre("a b", "\\", "\"", "", ""));
}

TEST(CommandWords, AQuoteThatIsNotClosedIsRefused) {
  EXPECT_FALSE(split_words("forward 'a").ok());
  EXPECT_FALSE(split_words("forward \"a'").ok());
}

WARPLINE_PROPERTY(CommandWords, QuotedWordsComeBack, (const std::vector<std::string>& given)) {
  std::string line;
  for (const std::string& word : given) {
    line += "'";
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += "' ";
  }
  RC_ASSERT(words(line) == given);
}

}  // namespace
}  // namespace warpline::rate
