// SPDX-License-Identifier: Apache-2.0
#include "rate/load_classification.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "warpline/base/property_testing.h"

namespace warpline::rate {
namespace {

constexpr double kLoad = 1e6;

constexpr Nanos seconds_of(std::int64_t seconds) { return Nanos{seconds * kTrialSecond.value}; }

SearchGoal example_goal(double loss_ratio, double exceed_ratio, std::int64_t final_s, std::int64_t sum_s) {
  return {.loss_ratio = loss_ratio,
          .exceed_ratio = exceed_ratio,
          .initial_trial_duration = seconds_of(1),
          .final_trial_duration = seconds_of(final_s),
          .duration_sum = seconds_of(sum_s)};
}

const SearchGoal kRfc2544 = example_goal(0, 0, 60, 60);
const SearchGoal kTst009 = example_goal(0, 0.5, 60, 120);
const SearchGoal kOneSecond = example_goal(0.005, 0.5, 1, 120);
const SearchGoal kFifthExceeds = example_goal(0.005, 0.2, 60, 60);

void add_trials(std::vector<TrialResult>& trials, int count, std::int64_t duration_s, std::uint64_t lost_per_mille) {
  for (int i = 0; i < count; ++i) trials.push_back({{kLoad, seconds_of(duration_s)}, {1000, lost_per_mille}});
}

constexpr LoadClass kUndecided = LoadClass::undecided, kLower = LoadClass::lower_bound, kUpper = LoadClass::upper_bound;

void expect_classes(const std::vector<TrialResult>& trials, const std::array<LoadClass, 4>& expected) {
  EXPECT_EQ(classify_load(trials, kRfc2544), expected[0]) << trials.size();
  EXPECT_EQ(classify_load(trials, kTst009), expected[1]) << trials.size();
  EXPECT_EQ(classify_load(trials, kOneSecond), expected[2]) << trials.size();
  EXPECT_EQ(classify_load(trials, kFifthExceeds), expected[3]) << trials.size();
}

/// Four goals and six points in time: the example of RFC 9971, appendix C. For the last goal its table has a lower
/// bound at the last two points, beside exceed ratios of 43 % and 27 % where 20 % are allowed; appendix A, which
/// specifies the classification, makes that an upper bound.
TEST(LoadClassification, IsThatOfTheExampleInTheRfc) {
  std::vector<TrialResult> trials;
  expect_classes(trials, {kUndecided, kUndecided, kUndecided, kUndecided});
  add_trials(trials, 59, 1, 0);
  expect_classes(trials, {kUndecided, kUndecided, kUndecided, kUndecided});
  add_trials(trials, 1, 1, 10);
  expect_classes(trials, {kUpper, kUndecided, kUndecided, kUndecided});
  add_trials(trials, 59, 1, 10);
  expect_classes(trials, {kUpper, kUndecided, kUndecided, kUpper});
  add_trials(trials, 1, 1, 0);
  expect_classes(trials, {kUpper, kUndecided, kLower, kUpper});
  add_trials(trials, 1, 60, 1);
  expect_classes(trials, {kUpper, kUndecided, kLower, kUpper});
  add_trials(trials, 1, 60, 0);
  expect_classes(trials, {kUpper, kLower, kLower, kUpper});

  EXPECT_DOUBLE_EQ(conditional_throughput(trials, kTst009, kLoad), 1e6);
  EXPECT_DOUBLE_EQ(conditional_throughput(trials, kOneSecond, kLoad), 1e6);
  EXPECT_DOUBLE_EQ(conditional_throughput(trials, kFifthExceeds, kLoad), 999e3);
}

TEST(LoadClassification, OneFullLengthTrialDecidesWhereNoneMayExceed) {
  std::vector<TrialResult> trials;
  add_trials(trials, 1, 60, 0);
  EXPECT_EQ(classify_load(trials, kRfc2544), kLower);
  EXPECT_DOUBLE_EQ(conditional_throughput(trials, kRfc2544, kLoad), kLoad);
  add_trials(trials, 1, 60, 1);
  EXPECT_EQ(classify_load(trials, kRfc2544), kUpper);
}

TEST(LoadClassification, WhatLosesExactlyTheGoalsRatioIsLowLoss) {
  std::vector<TrialResult> trials;
  add_trials(trials, 60, 1, 5);
  EXPECT_EQ(classify_load(trials, kOneSecond), kLower);
  EXPECT_DOUBLE_EQ(conditional_throughput(trials, kOneSecond, kLoad), 995e3);
}

TEST(LoadClassification, ATrialThatExpectedNothingForwardedNothing) {
  const std::vector<TrialResult> trials(120, TrialResult{{kLoad, seconds_of(1)}, {0, 0}});
  EXPECT_EQ(classify_load(trials, kOneSecond), kUpper);
}

WARPLINE_PROPERTY(LoadClassification, FullLengthTrialsForTheDurationSumAlwaysDecide, ()) {
  const double exceed_ratio = 0.01 * *rc::gen::inRange(0, 100);
  const auto duration_sum = *rc::gen::inRange<std::int64_t>(1, 40);
  const SearchGoal goal = example_goal(0.005, exceed_ratio, 1, duration_sum);
  const auto losses =
      *rc::gen::container<std::vector<bool>>(static_cast<std::size_t>(duration_sum), rc::gen::arbitrary<bool>());
  std::vector<TrialResult> trials;
  std::int64_t lossy = 0;
  for (const bool lost : losses) {
    add_trials(trials, 1, 1, lost ? 10 : 0);
    lossy += lost ? 1 : 0;
  }
  const bool exceeds = static_cast<double>(lossy) > static_cast<double>(duration_sum) * exceed_ratio + 1e-9;
  const bool upholds = static_cast<double>(lossy) < static_cast<double>(duration_sum) * exceed_ratio - 1e-9;
  const LoadClass load_class = classify_load(trials, goal);
  RC_ASSERT(load_class != kUndecided);
  RC_ASSERT(!exceeds || load_class == kUpper);
  if (!upholds) return;
  RC_ASSERT(load_class == kLower);
  RC_ASSERT(conditional_throughput(trials, goal, kLoad) >= kLoad * (1 - goal.loss_ratio));
}

}  // namespace
}  // namespace warpline::rate
