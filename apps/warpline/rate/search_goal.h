// SPDX-License-Identifier: Apache-2.0
// Terms of MLRsearch (RFC 9971, sections 4.4 to 4.7), named as there.
#pragma once

#include <cstdint>
#include <optional>

#include "warpline/base/units.h"

namespace warpline::rate {

inline constexpr Nanos kTrialSecond{1'000'000'000};

/// SearchGoal says what a load has to uphold, and how closely the load that just does is looked for. Ratios are
/// dimensionless, from 0 to below 1.
struct SearchGoal {
  double loss_ratio = 0;                        ///< Goal Loss Ratio: a trial that loses more is a high-loss trial
  double exceed_ratio = 0.5;                    ///< Goal Exceed Ratio: part of the trial time that may be high-loss
  Nanos initial_trial_duration{kTrialSecond};   ///< Goal Initial Trial Duration: no trial for this goal is shorter
  Nanos final_trial_duration{kTrialSecond};     ///< Goal Final Trial Duration: trials from this on are full-length
  Nanos duration_sum{21 * kTrialSecond.value};  ///< Goal Duration Sum: so much full-length trial time always decides
  double width = 0.005;                         ///< Goal Width: (upper bound - lower bound) / upper bound at most
};

/// TrialInput is one trial as it is asked for.
struct TrialInput {
  double load = 0;  ///< Trial Load: intended frames per second, of one interface
  Nanos duration;   ///< Trial Duration: how long frames are sent
};

/// TrialOutput is what came of a trial, in frames of all interfaces together.
struct TrialOutput {
  std::uint64_t expected = 0;  ///< frames that should have been forwarded
  std::uint64_t lost = 0;      ///< frames of these that were not, `expected` at most

  /// loss_ratio is the Trial Loss Ratio. A trial that expected nothing forwarded nothing: 1.
  [[nodiscard]] double loss_ratio() const {
    return expected == 0 ? 1 : static_cast<double>(lost) / static_cast<double>(expected);
  }
};

/// TrialResult is a trial that was made. The Trial Effective Duration is the Trial Duration.
struct TrialResult {
  TrialInput input;
  TrialOutput output;

  /// forwarding_rate is the Trial Forwarding Rate, in frames per second of one interface.
  [[nodiscard]] double forwarding_rate() const { return input.load * (1 - output.loss_ratio()); }
};

/// Regularity says whether a goal was reached, or what kept it from that.
enum class Regularity : std::uint8_t {
  regular,                  ///< both relevant bounds are there, no farther apart than the goal's width
  max_load_is_lower_bound,  ///< irregular: no load in the range is too high
  min_load_is_upper_bound,  ///< irregular: no load in the range is low enough
  unfinished,               ///< irregular: the search was ended before
};

/// GoalResult is a Regular or an Irregular Goal Result. Loads and rates are frames per second of one interface.
struct GoalResult {
  Regularity regularity = Regularity::unfinished;
  /// The largest load below the relevant upper bound that upholds the goal. If no load is an upper bound, the largest
  /// load that upholds it, which is no relevant bound in the sense of the RFC.
  std::optional<double> relevant_lower_bound;
  std::optional<double> relevant_upper_bound;    ///< the smallest load that fails the goal
  std::optional<double> conditional_throughput;  ///< at the relevant lower bound
};

}  // namespace warpline::rate
