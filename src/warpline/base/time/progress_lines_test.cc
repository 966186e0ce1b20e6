// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/time/progress_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace warpline {
namespace {

using std::chrono::seconds;

TEST(ProgressLines, TellsAtMostOneLineAnInterval) {
  std::vector<std::string> lines;
  const ProgressLines::Clock::time_point begin{};
  ProgressLines progress("table", 10, [&](const std::string& line) { lines.push_back(line); }, begin);
  for (int second = 2; second <= 20; second += 2) progress.step(begin + seconds(second));
  EXPECT_EQ(lines,
            (std::vector<std::string>{
                "table: [######..............] 3 of 10, 14 s left", "table: [############........] 6 of 10, 8 s left",
                "table: [##################..] 9 of 10, 2 s left", "table: [####################] 10 of 10"}));
}

TEST(ProgressLines, AnyTimeThatIsLeft) {
  EXPECT_EQ(progress_line("a", 1, 3, seconds(50)), "a: [######..............] 1 of 3, 1 min 40 s left");
  EXPECT_EQ(progress_line("a", 1, 11, seconds(1000)), "a: [#...................] 1 of 11, 2 h 46 min left");
  EXPECT_EQ(progress_line("a", 0, 3, seconds(1)), "a: [....................] 0 of 3");
  EXPECT_EQ(progress_line("a", 0, 0, seconds(1)), "a: [####################] 0 of 0");
}

}  // namespace
}  // namespace warpline
