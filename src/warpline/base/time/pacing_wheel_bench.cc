// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "warpline/base/random.h"
#include "warpline/base/time/pacing_wheel.h"

namespace warpline {
namespace {

/// As many timers as the argument wait, up to 1 ms ahead; each that fires is scheduled anew. One item is one firing
/// with its rescheduling.
void fire_and_schedule(benchmark::State& state) {
  const auto timers = static_cast<std::uint32_t>(state.range(0));
  PacingWheel<std::uint32_t> wheel(timers, Nanos{512}, Nanos{0});
  Random random(1);
  std::int64_t now = 0;
  for (std::uint32_t i = 0; i < timers; ++i)
    wheel.schedule(i, Nanos{static_cast<std::int64_t>(random.below(1'000'000))});
  std::size_t fired = 0;
  for (auto _ : state) {
    now += 1'000;
    fired += wheel.advance(Nanos{now}, [&](std::uint32_t value) {
      wheel.schedule(value, Nanos{now + static_cast<std::int64_t>(random.below(1'000'000))});
    });
  }
  if (wheel.size() != timers) std::abort();
  state.SetItemsProcessed(static_cast<std::int64_t>(fired));
}
BENCHMARK(fire_and_schedule)->Arg(100)->Arg(20'000);

/// A timer that is nearly always cancelled, as a retransmission timer is.
void schedule_and_cancel(benchmark::State& state) {
  PacingWheel<std::uint32_t> wheel(64, Nanos{512}, Nanos{0});
  std::int64_t now = 0;
  for (auto _ : state) {
    now += 100;
    if (!wheel.cancel(wheel.schedule(1, Nanos{now + 5'000'000}))) std::abort();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK(schedule_and_cancel);

}  // namespace
}  // namespace warpline
