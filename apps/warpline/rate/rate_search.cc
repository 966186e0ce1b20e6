// SPDX-License-Identifier: Apache-2.0
#include "rate/rate_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <tuple>

#include "rate/load_classification.h"

namespace warpline::rate {
namespace {

/// What rounding may add to a number of steps.
constexpr double kRounding = 1e-9;

double narrowest(const std::vector<SearchGoal>& goals) { return std::ranges::min(goals, {}, &SearchGoal::width).width; }

/// A value between two durations, in equal ratios: the first for part 0, the second for part 1.
Nanos between(Nanos first, Nanos second, double part) {
  const double ratio = static_cast<double>(second.value) / static_cast<double>(first.value);
  return Nanos{std::llround(static_cast<double>(first.value) * std::pow(ratio, part))};
}

bool is_ratio(double value) { return value >= 0 && value < 1; }

Result<void> check_goal(const SearchGoal& goal) {
  const auto refuse = [](std::string what, std::string why, std::string fix) {
    return usage_error(std::move(what), std::move(why), std::move(fix));
  };
  if (!is_ratio(goal.loss_ratio)) {
    return refuse(fmt::format("cannot search for a loss ratio of {}", goal.loss_ratio), "it is a part of all frames",
                  "use 0 to below 1");
  }
  if (!is_ratio(goal.exceed_ratio)) {
    return refuse(fmt::format("cannot use an exceed ratio of {}", goal.exceed_ratio), "it is a part of all trials",
                  "use 0 to below 1");
  }
  if (!is_ratio(goal.width) || goal.width < 1e-6) {
    return refuse(fmt::format("cannot search to a width of {}", goal.width), "it is a part of the upper bound",
                  "use 1e-6 to below 1, such as 0.005");
  }
  if (goal.initial_trial_duration.value <= 0 || goal.final_trial_duration < goal.initial_trial_duration) {
    return refuse(fmt::format("cannot combine an initial trial duration of {} with a final one of {}",
                              to_string(goal.initial_trial_duration), to_string(goal.final_trial_duration)),
                  "trials become longer in the course of a search", "use a shorter initial one");
  }
  if (goal.duration_sum < goal.final_trial_duration) {
    return refuse(fmt::format("cannot combine a duration sum of {} with a final trial duration of {}",
                              to_string(goal.duration_sum), to_string(goal.final_trial_duration)),
                  "one trial is longer than all together", "use a longer duration sum");
  }
  return {};
}

}  // namespace

LoadGrid::LoadGrid(double min, double max, double width) : min_(min), max_(max), log_ratio_(-std::log1p(-width)) {
  last_ = static_cast<std::size_t>(std::max(1.0, std::ceil(std::log(max / min) / log_ratio_ - kRounding)));
}

double LoadGrid::load(std::size_t index) const {
  if (index == 0) return min_;
  return max_ * std::exp(-log_ratio_ * static_cast<double>(last_ - index));
}

std::size_t LoadGrid::at_most(double load) const {
  if (load >= max_) return last_;
  if (load <= min_) return 0;
  const auto below = static_cast<std::size_t>(std::ceil(std::log(max_ / load) / log_ratio_ - kRounding));
  return below >= last_ ? 0 : last_ - below;
}

std::size_t LoadGrid::steps_within(double width) const {
  return static_cast<std::size_t>(std::max(1.0, std::floor(-std::log1p(-width) / log_ratio_ + kRounding)));
}

Result<RateSearch> RateSearch::create(std::vector<SearchGoal> goals, double min_load, double max_load) {
  if (goals.empty()) return usage_error("cannot search", "there is no goal", "name a loss ratio");
  for (const SearchGoal& goal : goals) WARPLINE_CHECK(check_goal(goal));
  if (!(min_load > 0) || !(max_load > min_load) || !std::isfinite(max_load)) {
    return usage_error(fmt::format("cannot search from {} to {} frames per second", min_load, max_load),
                       "that is no range of loads", "use a minimum above 0, and a maximum above it");
  }
  return RateSearch(std::move(goals), min_load, max_load);
}

RateSearch::RateSearch(std::vector<SearchGoal> goals, double min_load, double max_load)
    : goals_(std::move(goals)), grid_(min_load, max_load, narrowest(goals_)), approaches_(goals_.size()) {
  choose();
}

SearchGoal RateSearch::target_of(const SearchGoal& goal, int target) {
  if (target == kLastTarget) return goal;
  const double part = static_cast<double>(target) / kLastTarget;
  SearchGoal made = goal;
  made.final_trial_duration = between(goal.initial_trial_duration, goal.final_trial_duration, part);
  made.duration_sum = between(goal.initial_trial_duration, goal.duration_sum, part);
  return made;
}

std::size_t RateSearch::steps_of(const SearchGoal& goal, int target) const {
  std::size_t steps = grid_.steps_within(goal.width);
  for (int coarser = target; coarser < kLastTarget; ++coarser) steps *= kCoarser;
  return steps;
}

std::span<const TrialResult> RateSearch::trials_at(std::size_t index) const {
  const auto found = by_load_.find(index);
  if (found == by_load_.end()) return {};
  return found->second;
}

RateSearch::Bounds RateSearch::bounds_for(const SearchGoal& target) const {
  Bounds bounds;
  for (const auto& [index, trials] : by_load_) {
    const LoadClass load_class = classify_load(trials, target);
    if (load_class == LoadClass::lower_bound) bounds.lower = index;
    if (load_class != LoadClass::upper_bound) continue;
    bounds.upper = index;
    break;
  }
  return bounds;
}

Regularity RateSearch::regularity(const Bounds& bounds, std::size_t steps) const {
  if (bounds.upper == std::size_t{0}) return Regularity::min_load_is_upper_bound;
  if (!bounds.upper && bounds.lower == grid_.last()) return Regularity::max_load_is_lower_bound;
  const bool close = bounds.lower && bounds.upper && *bounds.upper - *bounds.lower <= steps;
  return close ? Regularity::regular : Regularity::unfinished;
}

std::optional<std::size_t> RateSearch::candidate(const Bounds& bounds, std::size_t guess, std::size_t steps) const {
  if (regularity(bounds, steps) != Regularity::unfinished) return std::nullopt;
  const bool has_lower = bounds.lower.has_value(), has_upper = bounds.upper.has_value();
  const std::size_t lower = bounds.lower.value_or(0), upper = bounds.upper.value_or(grid_.last());
  const std::size_t middle = lower + (upper - lower) / 2;
  if (has_lower && lower >= guess) return std::min(lower + std::max(steps, lower - guess), has_upper ? middle : upper);
  if (!has_upper || upper > guess) return guess;
  const std::size_t step = std::min(std::max(steps, guess - upper), upper);
  return std::max(upper - step, has_lower ? middle : lower);
}

std::optional<std::size_t> RateSearch::advance(const SearchGoal& goal, Approach& approach) {
  while (true) {
    const SearchGoal target = target_of(goal, approach.target);
    if (approach.target == 0 && !approach.guess) {
      const std::span<const TrialResult> at_max = trials_at(grid_.last());
      if (classify_load(at_max, target) == LoadClass::undecided) return grid_.last();
      approach.guess = grid_.at_most(at_max.back().forwarding_rate() / (1 - goal.loss_ratio));
    }
    const Bounds bounds = bounds_for(target);
    const std::optional<std::size_t> index = candidate(bounds, *approach.guess, steps_of(goal, approach.target));
    if (index || approach.target == kLastTarget) return index;
    approach.guess = bounds.lower.value_or(0);
    ++approach.target;
  }
}

/// The coarsest target's candidate comes first of all goals', and of these the smallest load: what fails there
/// would make trials at larger loads worthless.
void RateSearch::choose() {
  next_.reset();
  int best_target = 0;
  for (std::size_t i = 0; i < goals_.size(); ++i) {
    const std::optional<std::size_t> index = advance(goals_[i], approaches_[i]);
    const int target = approaches_[i].target;
    if (!index || (next_ && std::tie(best_target, next_index_) <= std::tie(target, *index))) continue;
    best_target = target;
    next_index_ = *index;
    next_ = TrialInput{grid_.load(*index), target_of(goals_[i], target).final_trial_duration};
  }
}

void RateSearch::add(const TrialOutput& output) {
  assert(next_ && output.lost <= output.expected);
  trials_.push_back({*next_, output});
  by_load_[next_index_].push_back(trials_.back());
  choose();
}

std::vector<GoalResult> RateSearch::results() const {
  std::vector<GoalResult> results;
  for (const SearchGoal& goal : goals_) {
    const Bounds bounds = bounds_for(goal);
    GoalResult& result = results.emplace_back();
    result.regularity = regularity(bounds, steps_of(goal, kLastTarget));
    if (bounds.upper) result.relevant_upper_bound = grid_.load(*bounds.upper);
    if (!bounds.lower) continue;
    result.relevant_lower_bound = grid_.load(*bounds.lower);
    result.conditional_throughput =
        conditional_throughput(trials_at(*bounds.lower), goal, *result.relevant_lower_bound);
  }
  return results;
}

}  // namespace warpline::rate
