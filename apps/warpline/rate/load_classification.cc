// SPDX-License-Identifier: Apache-2.0
#include "rate/load_classification.h"

#include <algorithm>
#include <vector>

namespace warpline::rate {
namespace {

/// Less time than this is a rounding error.
constexpr double kNanosecond = 1;

/// TrialTime is the time that trials of one load took, in nanoseconds, by what they say about a goal.
struct TrialTime {
  double full_low_loss = 0;
  double full_high_loss = 0;
  double short_low_loss = 0;
  double short_high_loss = 0;
};

bool is_full_length(const TrialResult& trial, const SearchGoal& goal) {
  return trial.input.duration >= goal.final_trial_duration;
}

TrialTime time_of(std::span<const TrialResult> trials, const SearchGoal& goal) {
  TrialTime time;
  for (const TrialResult& trial : trials) {
    const bool high = trial.output.loss_ratio() > goal.loss_ratio;
    const auto nanos = static_cast<double>(trial.input.duration.value);
    if (is_full_length(trial, goal)) {
      (high ? time.full_high_loss : time.full_low_loss) += nanos;
    } else {
      (high ? time.short_high_loss : time.short_low_loss) += nanos;
    }
  }
  return time;
}

}  // namespace

LoadClass classify_load(std::span<const TrialResult> trials, const SearchGoal& goal) {
  const TrialTime time = time_of(trials, goal);
  // Short trials only ever count against a load, and then only by what their low-loss ones do not balance.
  const double balancing = time.short_low_loss * goal.exceed_ratio / (1 - goal.exceed_ratio);
  const double high_loss = time.full_high_loss + std::max(0.0, time.short_high_loss - balancing);
  const double full = time.full_low_loss + high_loss;
  const double missing = std::max(0.0, static_cast<double>(goal.duration_sum.value) - full);
  const double allowed = (full + missing) * goal.exceed_ratio;
  if (high_loss > allowed) return LoadClass::upper_bound;
  return high_loss + missing > allowed ? LoadClass::undecided : LoadClass::lower_bound;
}

double conditional_throughput(std::span<const TrialResult> trials, const SearchGoal& goal, double load) {
  std::vector<const TrialResult*> full;
  double made = 0;
  for (const TrialResult& trial : trials) {
    if (!is_full_length(trial, goal)) continue;
    full.push_back(&trial);
    made += static_cast<double>(trial.input.duration.value);
  }
  std::ranges::sort(full, {}, [](const TrialResult* trial) { return trial->output.loss_ratio(); });
  double remaining = std::max(made, static_cast<double>(goal.duration_sum.value)) * (1 - goal.exceed_ratio);
  double loss_ratio = 1;
  for (const TrialResult* trial : full) {
    if (remaining <= kNanosecond) break;
    loss_ratio = trial->output.loss_ratio();
    remaining -= static_cast<double>(trial->input.duration.value);
  }
  return remaining > kNanosecond ? 0 : load * (1 - loss_ratio);
}

}  // namespace warpline::rate
