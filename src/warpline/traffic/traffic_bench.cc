// SPDX-License-Identifier: Apache-2.0
// What it costs to make a frame and to verify it: packets a second of one core. Buffers go round through a pool's
// cache, as in a loop on one lcore.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "warpline/base/statistics/perf_counters.h"
#include "warpline/base/time/clock.h"
#include "warpline/memory/packet_pool.h"
#include "warpline/runtime/eal.h"
#include "warpline/traffic/checker.h"
#include "warpline/traffic/generator.h"

namespace warpline::traffic {
namespace {

constexpr std::uint16_t kBurst = 64;

rte_mempool& pool() {
  static std::optional<runtime::Eal> eal;
  static std::optional<memory::PacketPool> pool;
  if (!pool) {
    runtime::LcorePlan plan;
    plan.control_cpus = {machine::Topology::of_machine()->cpus.back().id};
    runtime::RuntimeSettings settings;
    settings.hugepages = false;
    auto started = runtime::Eal::start_planned(settings, plan, {}, Bytes{64U << 20});
    if (!started) {
      std::fprintf(stderr, "%s\n", started.error().message().c_str());
      std::exit(3);
    }
    eal.emplace(*std::move(started));
    pool.emplace(*memory::PacketPool::make("bench", 4095, 256, 9216, runtime::kAnyNode));
  }
  return *pool->get();
}

TrafficPlan plan_of(std::int64_t size) {
  TrafficSettings settings;
  settings.size = size == 0 ? "imix" : std::to_string(size);
  return *TrafficPlan::make(settings, 1);
}

/// Runs `turn` of a burst over and over; what the processor counted is told for each frame.
template <typename Turn>
void measure(benchmark::State& state, Turn turn) {
  PerfCounters counters;
  PerfTotals totals;
  {
    const PerfScope scope(counters, totals);
    for (auto _ : state) turn();
  }
  const std::int64_t frames = state.iterations() * kBurst;
  state.SetItemsProcessed(frames);
  state.SetLabel(counters.describe());
  for (const auto& [name, value] : totals.each(static_cast<std::uint64_t>(frames))) state.counters[name] = value;
}

void generate(benchmark::State& state) {
  rte_mempool& buffers = pool();
  const TrafficPlan plan = plan_of(state.range(0));
  Generator generator(plan, 0, buffers);
  std::array<rte_mbuf*, kBurst> mbufs;
  measure(state, [&] {
    benchmark::DoNotOptimize(generator.fill(mbufs.data(), kBurst, ticks_now()));
    rte_pktmbuf_free_bulk(mbufs.data(), kBurst);
  });
}

void generate_and_check(benchmark::State& state) {
  rte_mempool& buffers = pool();
  const TrafficPlan plan = plan_of(state.range(0));
  Generator generator(plan, 0, buffers);
  Checker checker(plan, {});
  std::array<rte_mbuf*, kBurst> mbufs;
  measure(state, [&] {
    generator.fill(mbufs.data(), kBurst, ticks_now());
    const std::uint64_t now = ticks_now();
    for (rte_mbuf* mbuf : mbufs) {
      if (checker.check(mbuf, now) != Verdict::forward) state.SkipWithError("a frame is not as it was made");
    }
    rte_pktmbuf_free_bulk(mbufs.data(), kBurst);
  });
}

BENCHMARK(generate)->Arg(60)->Arg(64)->Arg(1514)->Arg(9014)->Arg(0)->ArgName("bytes");
BENCHMARK(generate_and_check)->Arg(60)->Arg(64)->Arg(1514)->Arg(9014)->Arg(0)->ArgName("bytes");

}  // namespace
}  // namespace warpline::traffic
