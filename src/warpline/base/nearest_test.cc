// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/nearest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace warpline {
namespace {

TEST(Nearest, FindsTheLeastChanged) {
  const std::vector<std::string> known = {"burst", "deadline", "engine", "mtu"};
  EXPECT_EQ(nearest("brust", known), "burst");
  EXPECT_EQ(nearest("dedline", known), "deadline");
  EXPECT_EQ(nearest("engines", known), "engine");
  EXPECT_EQ(nearest("mtu", known), "mtu");
}

TEST(Nearest, ASwapIsOneChange) {
  EXPECT_EQ(nearest("upd", std::vector<std::string>{"ip", "udp", "tcp"}), "udp");
  EXPECT_EQ(nearest("tpc", std::vector<std::string>{"ip", "udp", "tcp"}), "tcp");
}

TEST(Nearest, TakesTheFirstOfEqualsAndNothingFromNothing) {
  EXPECT_EQ(nearest("c", std::vector<std::string>{"a", "b"}), "a");
  EXPECT_EQ(nearest("", std::vector<std::string>{"abc", "ab"}), "ab");
  EXPECT_EQ(nearest("x", std::vector<std::string>{}), "");
}

}  // namespace
}  // namespace warpline
