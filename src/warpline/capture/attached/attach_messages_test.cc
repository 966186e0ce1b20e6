// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/attached/attach_messages.h"

#include <gtest/gtest.h>

#include <span>

namespace warpline::capture {
namespace {

TEST(AttachMessages, AreReadAsTheyWereWritten) {
  const AttachRequest request{.traces = true, .dropped_only = false, .one_in = 7, .snaplen = 99, .filter = {1, 2, 3}};
  EXPECT_EQ(read_request(to_bytes(request)), request);
  const AttachWelcome welcome{.rings = 3, .shape = {8, 99}, .interfaces = {{4, "left"}, {2, ""}}};
  EXPECT_EQ(read_welcome(to_bytes(welcome)), welcome);
  EXPECT_EQ(read_refusal(refusal("not today")), "not today");
  SourceTotals totals{.filtered = 5};
  totals.left_out[3] = 9;
  const auto read = read_totals(to_bytes(totals));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->filtered, 5U);
  EXPECT_EQ(read->left_out, totals.left_out);
}

TEST(AttachMessages, OnesThatAreCutOffAreNone) {
  const AttachBytes welcome = to_bytes(AttachWelcome{.rings = 1, .shape = {2, 9}, .interfaces = {{1, "left"}}});
  const AttachBytes totals = to_bytes(SourceTotals{});
  constexpr std::size_t kWithoutInterfaces = 20;
  for (std::size_t i = 0; i < welcome.size(); ++i) {
    EXPECT_EQ(read_welcome(std::span(welcome).first(i)).has_value(), i == kWithoutInterfaces) << i;
  }
  for (std::size_t i = 0; i < totals.size(); ++i) EXPECT_FALSE(read_totals(std::span(totals).first(i))) << i;
}

TEST(AttachMessages, OfAnotherKindOrVersionAreNone) {
  AttachBytes bytes = to_bytes(AttachRequest{});
  EXPECT_FALSE(read_refusal(bytes));
  ++bytes[0];
  EXPECT_FALSE(read_request(bytes));
}

TEST(AttachMessages, ARequestThatCannotBeIsNone) {
  EXPECT_FALSE(read_request(to_bytes(AttachRequest{.one_in = 0})));
  EXPECT_FALSE(read_request(to_bytes(AttachRequest{.snaplen = 0})));
  EXPECT_FALSE(read_request(to_bytes(AttachRequest{.snaplen = 16'385})));
}

}  // namespace
}  // namespace warpline::capture
