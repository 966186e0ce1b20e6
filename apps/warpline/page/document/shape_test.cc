// SPDX-License-Identifier: Apache-2.0
#include "page/document/shape.h"

#include <gtest/gtest.h>

namespace warpline::page {
namespace {

TEST(Shape, AStatisticHasAMedian) {
  const Json object = Json::parse(R"({"median": 2, "ci95": [1, 3], "min": 0, "max": 9, "samples": 5})");
  const auto statistic = as_statistic(object);
  ASSERT_TRUE(statistic);
  EXPECT_EQ(*statistic->low, 1);
  EXPECT_EQ(*statistic->high, 3);
  EXPECT_EQ(*statistic->least, 0);
  EXPECT_EQ(*statistic->count, 5);
  EXPECT_FALSE(as_statistic(Json::parse(R"({"median": "2"})")));
  EXPECT_FALSE(as_statistic(Json(2)));
}

TEST(Shape, WithoutAnIntervalTheExtremesAreOne) {
  const Json object = Json::parse(R"({"median": 2, "min": 0, "max": 9, "values": [0, 2, 9]})");
  const auto statistic = as_statistic(object);
  ASSERT_TRUE(statistic);
  EXPECT_EQ(*statistic->low, 0);
  EXPECT_EQ(*statistic->high, 9);
  EXPECT_EQ(statistic->least, nullptr);
  EXPECT_EQ(statistic->samples, (std::vector<double>{0, 2, 9}));
  const Json lone = Json::parse(R"({"median": 2})");
  EXPECT_EQ(as_statistic(lone)->low, nullptr);
}

TEST(Shape, LeavesHaveTheirPathAndNoSamples) {
  const Json object = Json::parse(
      R"({"a": 1, "b": {"c": "x", "d": {"median": 1}}, "values": [1, 2], "rows": [{"e": 1}], "list": ["y"]})");
  std::vector<std::string> paths;
  for (const Leaf& leaf : leaves(object)) paths.push_back(leaf.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"a", "b.c", "b.d", "list"}));
}

TEST(Shape, LabelsTakeAsManyScalarsAsTellRowsApart) {
  const auto of = [](const char* text) { return labels(Json::parse(text)); };
  EXPECT_EQ(of(R"([{"size": 1, "burst": 2, "x": 7}, {"size": 1, "burst": 4, "x": 8}])"),
            (std::vector<std::string>{"burst 2", "burst 4"}));
  EXPECT_EQ(of(R"([{"a": 1, "b": "p"}, {"a": 1, "b": "q"}, {"a": 2, "b": "p"}])"),
            (std::vector<std::string>{"a 1, b p", "a 1, b q", "a 2, b p"}));
  EXPECT_EQ(of(R"([{"x": 1, "name": "one"}, {"x": 2, "name": "two"}])"), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(of(R"([{"x": 1}])"), (std::vector<std::string>{""}));
  EXPECT_EQ(of(R"([{"x": 1.5}, {"x": 2.5}])"), (std::vector<std::string>{"", ""}));
  EXPECT_TRUE(of("[]").empty());
}

TEST(Shape, WhatAllLabelsBeginWithIsSaidOnce) {
  std::vector<std::string> names = {"gpu, 64 B, 7 pipelines", "gpu, 64 B, 14 pipelines"};
  EXPECT_EQ(without_common_parts(names), "gpu, 64 B");
  EXPECT_EQ(names, (std::vector<std::string>{"7 pipelines", "14 pipelines"}));
  std::vector<std::string> prefix = {"a, b", "a"};
  EXPECT_EQ(without_common_parts(prefix), "");
  std::vector<std::string> one = {"a, b"};
  EXPECT_EQ(without_common_parts(one), "");
}

TEST(Shape, RecordsOfOneKindAreATable) {
  EXPECT_TRUE(is_record_map(Json::parse(R"({"rx": {"packets": 1, "bytes": 2}, "tx": {"packets": 1, "bytes": 2}})")));
  EXPECT_FALSE(is_record_map(Json::parse(R"({"rx": {"packets": 1}, "gpu": {"name": "x", "memory": 2}})")));
  EXPECT_FALSE(is_record_map(Json::parse(R"({"a": {"median": 1}, "b": {"median": 1}})")));
  EXPECT_TRUE(is_statistic_map(Json::parse(R"({"a": {"median": 1}, "b": {"median": 1}})")));
  EXPECT_FALSE(is_statistic_map(Json::object()));
}

}  // namespace
}  // namespace warpline::page
