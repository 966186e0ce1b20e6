// SPDX-License-Identifier: Apache-2.0
// What the trials at one load say about a goal (RFC 9971, section 6 and appendices A and B).
#pragma once

#include <cstdint>
#include <span>

#include "rate/search_goal.h"

namespace warpline::rate {

/// LoadClass is what a load is for a goal.
enum class LoadClass : std::uint8_t {
  undecided,    ///< trials within the goal's duration sum may still decide either way
  lower_bound,  ///< certain to uphold the goal
  upper_bound,  ///< certain to fail it
};

/// Classifies a load by all trials that were made at it, of any duration and in any order.
[[nodiscard]] LoadClass classify_load(std::span<const TrialResult> trials, const SearchGoal& goal);

/// Returns the Conditional Throughput of a load, in frames per second of one interface: the forwarding rate that its
/// full-length trials reach or surpass, but for the exceed ratio's part of the duration sum. Trials that were not made,
/// because the others had decided, count as if all had been lost.
[[nodiscard]] double conditional_throughput(std::span<const TrialResult> trials, const SearchGoal& goal, double load);

}  // namespace warpline::rate
