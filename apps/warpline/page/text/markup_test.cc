// SPDX-License-Identifier: Apache-2.0
#include "page/text/markup.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "warpline/base/property_testing.h"

namespace warpline::page {
namespace {

TEST(Markup, EscapesWhatWouldBeMarkup) {
  EXPECT_EQ(escape("<a href=\"x\">&'</a>"), "&lt;a href=&quot;x&quot;&gt;&amp;'&lt;/a&gt;");
  EXPECT_EQ(escape(std::string_view("a\0b\x1f\n", 5)), "a\ufffdb\ufffd\n");
  EXPECT_EQ(escape("Größe µs"), "Größe µs");
}

WARPLINE_PROPERTY(Markup, NothingEscapedIsMarkup, (const std::string& text)) {
  RC_ASSERT(escape(text).find_first_of("<>\"") == std::string::npos);
}

TEST(Markup, RoundsToFourDigitsOrTheIntegerPart) {
  EXPECT_EQ(rounded(353.5667894454469), "353.6");
  EXPECT_EQ(rounded(0.9917264532142729), "0.9917");
  EXPECT_EQ(rounded(2.0), "2");
  EXPECT_EQ(rounded(0.0), "0");
  EXPECT_EQ(rounded(-0.25), "-0.25");
  EXPECT_EQ(rounded(8343965.075), "8\u202f343\u202f965");
  EXPECT_EQ(rounded(2.1026730213116716e-08), "2.103e-08");
  EXPECT_EQ(rounded(Json(1234)), "1234");
  EXPECT_EQ(rounded(Json(12345)), "12\u202f345");
  EXPECT_EQ(rounded(Json(-12345)), "-12\u202f345");
}

WARPLINE_PROPERTY(Markup, RoundingKeepsThreeDigits, (double value)) {
  RC_PRE(std::isfinite(value));
  std::string text = rounded(value);
  for (std::size_t at = text.find("\u202f"); at != std::string::npos; at = text.find("\u202f")) text.erase(at, 3);
  RC_ASSERT(std::abs(std::strtod(text.c_str(), nullptr) - value) <= std::abs(value) * 1e-3);
}

TEST(Markup, DataHasAllDigitsOnlyWhereTheTextHasNot) {
  EXPECT_EQ(data(Json(353.5667)), "<data value=\"353.5667\">353.6</data>");
  EXPECT_EQ(data(Json(12)), "12");
  EXPECT_EQ(data(Json(0.5)), "0.5");
}

}  // namespace
}  // namespace warpline::page
