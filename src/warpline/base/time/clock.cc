// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/time/clock.h"

#include <ctime>

namespace warpline {
namespace {

std::uint64_t monotonic_nanos() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

/// Both clocks at one moment.
struct Reading {
  std::uint64_t ticks;
  std::uint64_t nanos;
};

/// Reads both clocks together. Of several attempts the tightest counts: a thread that loses its processor between the
/// two reads would shift every time and rate of the run.
Reading read_both() {
  constexpr int kAttempts = 16;
  Reading best{};
  std::uint64_t tightest = UINT64_MAX;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint64_t before = ticks_now();
    const std::uint64_t nanos = monotonic_nanos();
    const std::uint64_t gap = ticks_now() - before;
    if (gap >= tightest) continue;
    tightest = gap;
    best = {before + gap / 2, nanos};
  }
  return best;
}

double measure_ticks_per_second() {
  constexpr std::uint64_t kInterval = 20'000'000;
  const Reading start = read_both();
  while (monotonic_nanos() - start.nanos < kInterval) {
  }
  const Reading end = read_both();
  return static_cast<double>(end.ticks - start.ticks) * 1e9 / static_cast<double>(end.nanos - start.nanos);
}

}  // namespace

double ticks_per_second() {
  static const double rate = measure_ticks_per_second();
  return rate;
}

}  // namespace warpline
