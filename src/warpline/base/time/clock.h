// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/units.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace warpline {

/// Ticks of the invariant time-stamp counter. Not serialising: good for intervals of 100 ns and more.
[[nodiscard]] inline std::uint64_t ticks_now() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
#error "no tick counter known for this processor"
#endif
}

/// Ticks in a second, measured once against the kernel's monotonic clock (takes 20 ms on first use).
[[nodiscard]] double ticks_per_second();

[[nodiscard]] inline double ticks_to_nanos(std::uint64_t ticks) {
  return static_cast<double>(ticks) * 1e9 / ticks_per_second();
}

[[nodiscard]] inline std::uint64_t nanos_to_ticks(Nanos nanos) {
  return static_cast<std::uint64_t>(static_cast<double>(nanos.value) * ticks_per_second() / 1e9);
}

}  // namespace warpline
