// SPDX-License-Identifier: Apache-2.0
// What protection costs a packet, of the payload sizes that messages have.
#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "warpline/base/statistics/perf_counters.h"
#include "warpline/protection/packet_protection.h"

namespace warpline::protection {
namespace {

constexpr message::HandshakeTranscript kSession{1, 2, 3, 4};

void seal_and_open(benchmark::State& state) {
  const auto client = *make_protection(AesKey{1}, 1);
  const auto server = *make_protection(AesKey{1}, 1);
  client->start(0, kSession, true);
  server->start(0, kSession, false);
  const std::array<std::uint8_t, 48> header{};
  std::vector<std::uint8_t> text(static_cast<std::size_t>(state.range(0)));
  std::array<std::uint8_t, message::PacketProtection::kTagBytes> tag{};
  std::uint64_t number = 0;
  PerfCounters counters;
  PerfTotals totals;
  {
    const PerfScope scope(counters, totals);
    for (auto _ : state) {
      client->seal(0, number, header, text, tag);
      if (!server->open(0, number, header, text, tag)) state.SkipWithError("what was sealed does not open");
      ++number;
    }
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
  state.SetLabel(counters.describe());
  for (const auto& [name, value] : totals.each(number)) state.counters[name] = value;
}
BENCHMARK(seal_and_open)->Arg(32)->Arg(256)->Arg(1408);

void start(benchmark::State& state) {
  const auto protection = *make_protection(AesKey{1}, 1);
  message::HandshakeTranscript session = kSession;
  for (auto _ : state) {
    ++session[8];
    protection->start(0, session, true);
  }
}
BENCHMARK(start);

}  // namespace
}  // namespace warpline::protection
