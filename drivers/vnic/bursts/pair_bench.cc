// SPDX-License-Identifier: Apache-2.0
// What a pair of ports with the inline engine carries on one core: 64-byte frames leave one port, come in at the other,
// are forwarded there, come back to the first and are sent again. An item is a frame forwarded: twice sent and
// received.
#include <benchmark/benchmark.h>

#include <string>

#include "vnic/api/driver_testing.h"
#include "warpline/base/time/clock.h"

namespace {

using namespace warpline::vnic;

constexpr std::uint16_t kPairBurst = 32;

std::uint16_t forward(const Port& port) {
  rte_mbuf* mbufs[kPairBurst];
  const std::uint16_t count = rte_eth_rx_burst(port.id, 0, mbufs, kPairBurst);
  const std::uint16_t sent = rte_eth_tx_burst(port.id, 0, mbufs, count);
  for (std::uint16_t rest = sent; rest < count; ++rest) rte_pktmbuf_free(mbufs[rest]);
  return sent;
}

void pair(benchmark::State& state, const std::string& faults, std::uint64_t tx_offloads) {
  const auto length = static_cast<std::size_t>(state.range(0));
  const auto in_flight = static_cast<unsigned>(state.range(1));
  const Pool pool(8191, RTE_MBUF_DEFAULT_BUF_SIZE, 256);
  Port near("net_vnic0", "wire=net_vnic1" + faults);
  Port far("net_vnic1", "wire=net_vnic0" + faults);
  const PortSetup setup{.ring = 512, .tx_offloads = tx_offloads};
  if (near.start(pool.get(), setup) != 0 || far.start(pool.get(), setup) != 0) {
    return state.SkipWithError("the ports do not start");
  }
  for (unsigned i = 0; i < in_flight; ++i) near.send(pool.make(std::vector<std::uint8_t>(length, 0xff)));
  std::uint64_t packets = 0;
  std::uint64_t ticks = 0;
  for (auto _ : state) {
    const std::uint64_t begin = warpline::ticks_now();
    for (unsigned i = 0; i < 1024; ++i) {
      packets += forward(far);
      forward(near);
    }
    ticks += warpline::ticks_now() - begin;
  }
  const std::map<std::string, std::uint64_t> counts = near.counts();
  state.counters["cycles_per_packet"] = static_cast<double>(ticks) / static_cast<double>(packets);
  state.counters["engine_cycles_per_packet"] =
      static_cast<double>(counts.at("engine_cycles") + far.counts().at("engine_cycles")) / static_cast<double>(packets);
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
}

void pair_fast_free(benchmark::State& state) { pair(state, "", RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE); }
void pair_checked_free(benchmark::State& state) { pair(state, "", 0); }
void pair_faulty(benchmark::State& state) { pair(state, ",corrupt=0.000001", RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE); }

// Bytes without FCS; frames under way.
BENCHMARK(pair_fast_free)->Args({60, 32})->Args({60, 256})->Args({64, 32})->Args({1514, 32});
BENCHMARK(pair_checked_free)->Args({60, 32});
BENCHMARK(pair_faulty)->Args({60, 32});

}  // namespace
