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

double measure_ticks_per_second() {
  constexpr std::uint64_t kInterval = 20'000'000;
  const std::uint64_t start_nanos = monotonic_nanos();
  const std::uint64_t start_ticks = ticks_now();
  std::uint64_t nanos = start_nanos;
  while (nanos - start_nanos < kInterval) nanos = monotonic_nanos();
  const std::uint64_t ticks = ticks_now() - start_ticks;
  return static_cast<double>(ticks) * 1e9 / static_cast<double>(nanos - start_nanos);
}

}  // namespace

double ticks_per_second() {
  static const double rate = measure_ticks_per_second();
  return rate;
}

}  // namespace warpline
