// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attach/top_screen.h"

namespace warpline::attach {
namespace {

/// A sample at a time, of answers as DPDK gives them.
Sample sample_of(double time_s, const std::map<std::string, std::string>& answers) {
  Sample sample{.time_s = time_s};
  for (const auto& [name, answer] : answers) add_answer(sample, name, nlohmann::json::parse(answer));
  return sample;
}

const TopRow* find(const std::vector<TopRow>& rows, RowKind kind, const std::string& name) {
  for (const TopRow& row : rows) {
    if (row.kind == kind && row.name == name) return &row;
  }
  return nullptr;
}

TopTable two_samples() {
  TopTable table;
  table.add(sample_of(10, {{"warpline_port_received_packets", R"({"b": 100, "a": 50})"},
                           {"warpline_port_received_bytes", R"({"b": 6000, "a": 3000})"},
                           {"warpline_dropped_packets", R"({"tx_full": 0, "no_route": 7})"}}));
  table.add(sample_of(12, {{"warpline_port_received_packets", R"({"b": 300, "a": 1050})"},
                           {"warpline_port_received_bytes", R"({"b": 18000, "a": 63000})"},
                           {"warpline_dropped_packets", R"({"tx_full": 4, "no_route": 7})"}}));
  return table;
}

TEST(Top, MakesRatesOfTwoSamples) {
  const std::vector<TopRow> rows = two_samples().rows(SortBy::name);
  const TopRow* const port = find(rows, RowKind::port, "a received");
  ASSERT_NE(port, nullptr);
  EXPECT_EQ(port->total, 1050);
  EXPECT_EQ(port->per_s, 500);
  EXPECT_EQ(port->bits_per_s, 240'000);
  EXPECT_EQ(port->history, std::vector<double>{500});
  const TopRow* const drop = find(rows, RowKind::drop, "tx_full");
  ASSERT_NE(drop, nullptr);
  EXPECT_EQ(drop->per_s, 2) << "it was 0 before, which has no row";
  EXPECT_EQ(find(rows, RowKind::drop, "no_route")->per_s, 0);
  EXPECT_EQ(find(rows, RowKind::queue, "received"), nullptr);
}

TEST(Top, SortsWithinAKind) {
  const TopTable table = two_samples();
  const auto names = [&](SortBy sort) {
    std::string all;
    for (const TopRow& row : table.rows(sort)) all += row.name + " ";
    return all;
  };
  EXPECT_EQ(names(SortBy::name), "a received b received no_route tx_full ");
  EXPECT_EQ(names(SortBy::rate), "a received b received tx_full no_route ");
  EXPECT_EQ(names(SortBy::total), "a received b received no_route tx_full ");
}

TEST(Top, DrawsWhatFits) {
  const std::vector<TopRow> rows = two_samples().rows(SortBy::name);
  const std::vector<std::string> lines = draw({.process = "forward x, pid 1", .every = "every 2 s"}, rows, 80, 24);
  ASSERT_EQ(lines.size(), rows.size() + 3);
  EXPECT_EQ(lines[0], "warpline forward x, pid 1, every 2 s");
  EXPECT_EQ(lines[2], "port    a received                    500 240.000k            1050  \xe2\x96\x88");
  EXPECT_EQ(lines.back(), "q quit   s sort (by name)   p pause");
  const std::vector<std::string> small = draw({.process = "x", .every = "y", .paused = true}, rows, 10, 5);
  ASSERT_EQ(small.size(), 5U);
  EXPECT_EQ(small[2].size(), 10U);
  EXPECT_EQ(small[3], "... and 3 ");
  EXPECT_TRUE(draw({}, rows, 80, 0).empty());
}

TEST(Top, DrawsNoControlCharacters) {
  TopTable table;
  table.add(sample_of(1, {{"warpline_stage_packets", R"({"a\u001b[31m": 1})"}}));
  EXPECT_NE(draw({}, table.rows(SortBy::name), 80, 24)[2].find("a?[31m"), std::string::npos);
}

TEST(Top, HasShortNumbersAndBars) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(999), "999");
  EXPECT_EQ(short_number(14'880'952), "14.881M");
  EXPECT_EQ(short_number(999'999'900), "1.000G");
  EXPECT_LE(short_number(1e19).size(), 8U);
  EXPECT_EQ(sparkline({0, 5, 10}, 2), "\xe2\x96\x85\xe2\x96\x88");
  EXPECT_EQ(sparkline({0, 0}, 9), "\xe2\x96\x81\xe2\x96\x81");
  EXPECT_EQ(sparkline({}, 9), "");
}

TEST(Top, TakesAnswersForWhatTheyAre) {
  EXPECT_EQ(answer_in(R"({"/warpline/metrics": [1]})", "/warpline/metrics,x"), nlohmann::json::array({1}));
  for (const char* const text : {"", "[]", "{", R"({"/other": 1})"})
    EXPECT_TRUE(answer_in(text, "/x").is_null()) << text;
  const Sample sample = sample_of(1, {{"m", R"({"a": -1, "b": 1e300, "c": "x", "d": 5})"}, {"n", "[1]"}});
  EXPECT_EQ(sample.metrics, (decltype(sample.metrics){{"m", {{"d", 5}}}}));
}

}  // namespace
}  // namespace warpline::attach
