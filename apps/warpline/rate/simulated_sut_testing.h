// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include "rate/rate_search.h"
#include "warpline/base/random.h"

namespace warpline::rate {

/// SimulatedSut is a system under test: the part of the frames that one trial loses, 0 to 1. The same seed and the same
/// trials give the same losses.
using SimulatedSut = std::function<double(const TrialInput&, Random&)>;

/// Uniform in [0, 1).
inline double uniform(Random& random) { return static_cast<double>(random.next() >> 11) * 0x1p-53; }

/// Forwards `limit` frames per second and loses all others.
inline SimulatedSut sharp_limit(double limit) {
  return [=](const TrialInput& trial, Random&) { return std::max(0.0, 1 - limit / trial.load); };
}

/// The closer to the limit a load is, the more of its trials lose one frame in a hundred: half of them at the limit,
/// one in 150 at `softness` limits below.
inline SimulatedSut soft_limit(double limit, double softness) {
  return [=](const TrialInput& trial, Random& random) {
    const double distance = (trial.load - limit) / (softness * limit);
    return uniform(random) < 1 / (1 + std::exp(-5 * distance)) ? 0.01 : 0.0;
  };
}

/// Somebody else's work takes the processor away in `part` of the trials of a second, and in more of longer ones.
inline SimulatedSut noisy_neighbour(double limit, double part) {
  return [=](const TrialInput& trial, Random& random) {
    const double undisturbed = std::pow(1 - part, static_cast<double>(trial.duration.value) / 1e9);
    const double lost = std::max(0.0, 1 - limit / trial.load);
    return uniform(random) < undisturbed ? lost : std::max(lost, 0.02);
  };
}

/// Loses frames between two loads, and again above a limit.
inline SimulatedSut non_monotonic(double from, double to, double limit) {
  return [=](const TrialInput& trial, Random&) {
    if (trial.load > from && trial.load < to) return 0.1;
    return std::max(0.0, 1 - limit / trial.load);
  };
}

/// Loses a random part of the frames, or none, whatever is offered.
inline SimulatedSut erratic(double lossy_part) {
  return [=](const TrialInput&, Random& random) { return uniform(random) < lossy_part ? uniform(random) : 0.0; };
}

/// Makes all trials that a search asks for, `most` at most. Returns whether the search ended.
inline bool simulate(RateSearch& search, const SimulatedSut& sut, std::uint64_t seed, std::size_t most) {
  Random random(seed);
  while (const auto trial = search.next()) {
    if (search.trials().size() == most) return false;
    const double frames = std::max(1.0, trial->load * static_cast<double>(trial->duration.value) / 1e9);
    const auto expected = static_cast<std::uint64_t>(frames);
    const auto lost = static_cast<std::uint64_t>(std::ceil(sut(*trial, random) * static_cast<double>(expected) - 1e-6));
    search.add({expected, std::min(lost, expected)});
  }
  return true;
}

/// Returns how long the trials of a search took together, in seconds.
inline double seconds_spent(const RateSearch& search) {
  double seconds = 0;
  for (const TrialResult& trial : search.trials()) seconds += static_cast<double>(trial.input.duration.value) / 1e9;
  return seconds;
}

}  // namespace warpline::rate
