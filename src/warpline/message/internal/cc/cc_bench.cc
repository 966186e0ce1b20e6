// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/message/internal/cc/congestion_control.h"

namespace warpline::message {
namespace {

/// One acknowledgement of each of many sessions in turn, round trips around the target.
void on_ack(benchmark::State& state, CcKind kind) {
  CcConfig config;
  config.kind = kind;
  std::vector<CongestionControl> sessions(static_cast<std::size_t>(state.range(0)), CongestionControl(config));
  std::vector<CcSample> samples(4096);
  Random random(1);
  std::int64_t now = 0;
  for (CcSample& sample : samples) {
    sample = {.now = Nanos{now += 400},
              .rtt = Nanos{static_cast<std::int64_t>(20'000 + random.below(60'000))},
              .remote_delay = Nanos{1'000},
              .acked_bytes = config.mtu,
              .acked_packets = 1,
              .ecn_marked_packets = static_cast<std::uint32_t>(random.below(8) == 0),
              .in_flight_bytes = 16 * config.mtu};
  }
  std::size_t i = 0;
  double windows = 0;
  for (auto _ : state) {
    windows += sessions[i % sessions.size()].on_ack(samples[i % samples.size()]).window_bytes;
    ++i;
  }
  if (!(windows > 0)) std::abort();
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK_CAPTURE(on_ack, swift, CcKind::swift)->Arg(1)->Arg(100)->Arg(20'000);
BENCHMARK_CAPTURE(on_ack, timely, CcKind::timely)->Arg(1)->Arg(100)->Arg(20'000);
BENCHMARK_CAPTURE(on_ack, dctcp, CcKind::dctcp)->Arg(1)->Arg(100)->Arg(20'000);
BENCHMARK_CAPTURE(on_ack, none, CcKind::none)->Arg(1)->Arg(100)->Arg(20'000);

}  // namespace
}  // namespace warpline::message
