// SPDX-License-Identifier: Apache-2.0
// Two endpoints back to back in memory: what the protocol costs, without any network.
#include <benchmark/benchmark.h>

#include "warpline/message/request_loop_testing.h"

namespace warpline::message {
namespace {

/// Requests and responses of `bytes`, `depth` in flight for each of `sessions`; both ends on one core.
void requests(benchmark::State& state, CcKind control) {
  const auto length = static_cast<std::uint32_t>(state.range(0));
  const auto sessions = static_cast<std::uint32_t>(state.range(1));
  const auto depth = static_cast<std::uint32_t>(state.range(2));
  RequestLoop loop({.bytes = length, .sessions = sessions, .outstanding = depth * sessions, .control = control});
  const std::uint64_t packets_before = loop.packets();
  std::uint64_t done = 0;
  for (auto _ : state) done += loop.run(1);
  const auto rpcs = static_cast<double>(done);
  state.SetItemsProcessed(static_cast<std::int64_t>(done));
  state.counters["ns/rpc"] = benchmark::Counter(rpcs * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["packets/rpc"] = static_cast<double>(loop.packets() - packets_before) / rpcs;
  state.counters["probes"] = static_cast<double>(loop.probes());
  if (length > 1000) {
    state.SetBytesProcessed(static_cast<std::int64_t>(done) * length * 2);
  }
}
BENCHMARK_CAPTURE(requests, swift, CcKind::swift)
    ->ArgNames({"bytes", "sessions", "depth"})
    ->Args({32, 1, 32})
    ->Args({32, 1, 1})
    ->Args({32, 100, 1})
    ->Args({32, 20000, 1})
    ->Args({1024, 100, 1})
    ->Args({8 << 20, 1, 2});
BENCHMARK_CAPTURE(requests, no_control, CcKind::none)
    ->ArgNames({"bytes", "sessions", "depth"})
    ->Args({32, 1, 32})
    ->Args({32, 100, 1});

}  // namespace
}  // namespace warpline::message
