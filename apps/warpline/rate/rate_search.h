// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "rate/search_goal.h"
#include "warpline/base/result.h"

namespace warpline::rate {

/// LoadGrid is the loads that a search may try: from the largest down in equal ratios, and the smallest. Neighbours are
/// no farther apart than the width that the grid was made for, so a search over it ends.
class LoadGrid {
 public:
  /// Makes the grid for 0 < min < max and 0 < width < 1.
  LoadGrid(double min, double max, double width);

  [[nodiscard]] std::size_t last() const { return last_; }  ///< index of the largest load; the smallest has index 0
  [[nodiscard]] double load(std::size_t index) const;
  /// Returns the index of the largest load that is not above `load`; 0 if there is none.
  [[nodiscard]] std::size_t at_most(double load) const;
  /// Returns how many steps up are within `width`, 1 at least.
  [[nodiscard]] std::size_t steps_within(double width) const;

 private:
  double min_;
  double max_;
  double log_ratio_;  ///< logarithm of a load divided by its neighbour below
  std::size_t last_ = 0;
};

/// RateSearch is the Controller of MLRsearch (RFC 9971): it says which trial to make next, takes what came of it, and
/// ends with a result for each goal. It does no I/O and knows no clock; one thread.
///
/// Every trial counts for every goal. A goal is approached by targets, each with longer and more trials and a narrower
/// width than the one before, the last being the goal itself. The first trial is at the maximum load, for the
/// forwarding rate there is a good guess at the others (FRMOL, RFC 2285). From a guess the search doubles its steps
/// until it has a bound on both sides, then bisects. A trial is only made at a load that its target leaves undecided,
/// which the target's duration sum bounds, so the search ends whatever the results are.
class RateSearch {
 public:
  /// Makes a search for loads from `min_load` to `max_load`, frames per second of one interface. Returns a usage error
  /// for a range, or goals, that make no sense.
  [[nodiscard]] static Result<RateSearch> create(std::vector<SearchGoal> goals, double min_load, double max_load);

  /// Returns the trial to make; the same one until its outcome is added. Nothing when the search has ended.
  [[nodiscard]] std::optional<TrialInput> next() const { return next_; }
  /// Takes the outcome of next(), which must not be empty.
  void add(const TrialOutput& output);

  /// Returns every trial so far, in the order that they were made.
  [[nodiscard]] std::span<const TrialResult> trials() const { return trials_; }
  /// Returns a result for each goal, in the order of the goals. Those of a search that has not ended are as far as it
  /// got.
  [[nodiscard]] std::vector<GoalResult> results() const;
  [[nodiscard]] std::span<const SearchGoal> goals() const { return goals_; }

 private:
  static constexpr int kLastTarget = 2;
  /// Each target before the last has so many times the width of the next one.
  static constexpr std::size_t kCoarser = 4;

  /// How far a goal has come.
  struct Approach {
    int target = 0;
    std::optional<std::size_t> guess;  ///< where the target before found its lower bound
  };
  /// The relevant bounds at this time, by index.
  struct Bounds {
    std::optional<std::size_t> lower;
    std::optional<std::size_t> upper;
  };

  RateSearch(std::vector<SearchGoal> goals, double min_load, double max_load);

  /// Returns the goal as its target number `target` has it.
  [[nodiscard]] static SearchGoal target_of(const SearchGoal& goal, int target);
  [[nodiscard]] std::size_t steps_of(const SearchGoal& goal, int target) const;
  [[nodiscard]] Bounds bounds_for(const SearchGoal& target) const;
  [[nodiscard]] std::span<const TrialResult> trials_at(std::size_t index) const;
  [[nodiscard]] Regularity regularity(const Bounds& bounds, std::size_t steps) const;
  /// Returns the index to try for a target; nothing if its bounds are as close as they are to be.
  [[nodiscard]] std::optional<std::size_t> candidate(const Bounds& bounds, std::size_t guess, std::size_t steps) const;
  /// Moves a goal on to the first of its targets that is not done. Returns what to try for it.
  [[nodiscard]] std::optional<std::size_t> advance(const SearchGoal& goal, Approach& approach);
  void choose();

  std::vector<SearchGoal> goals_;
  LoadGrid grid_;
  std::vector<Approach> approaches_;
  std::vector<TrialResult> trials_;
  std::map<std::size_t, std::vector<TrialResult>> by_load_;
  std::optional<TrialInput> next_;
  std::size_t next_index_ = 0;
};

}  // namespace warpline::rate
