// SPDX-License-Identifier: Apache-2.0
// What receiving and sending 64-byte frames costs the driver itself: bursts of 32 come out of a wire=static port and
// go back into it, on one core, beside the same with net_null, which has no rings.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <string>

#include "vnic/api/driver_testing.h"
#include "warpline/base/time/clock.h"
#include "warpline/vnic/copy_ops.h"
#include "warpline/vnic/recycle_ops.h"

namespace {

using namespace warpline::vnic;

constexpr std::uint16_t kBurst = 32;

/// A copy engine that copies nothing: each batch has landed at once.
struct NoCopies {
  std::uint64_t submitted[2]{};
  [[nodiscard]] rte_net_vnic_copy_engine engine() {
    return {this,
            [](void* self, rte_net_vnic_direction direction, std::uint16_t /*queue*/) -> void* {
              return &static_cast<NoCopies*>(self)->submitted[direction];
            },
            [](void* /*lane*/) {},
            [](void* lane, const rte_net_vnic_copy* /*copies*/, std::uint32_t /*count*/) {
              ++*static_cast<std::uint64_t*>(lane);
              return 0;
            },
            [](void* lane) { return *static_cast<std::uint64_t*>(lane); }};
  }
};

void forward(benchmark::State& state, const char* name, const char* args, const PortSetup& setup,
             const rte_net_vnic_copy_engine* copies = nullptr) {
  const Pool pool(8191, RTE_MBUF_DEFAULT_BUF_SIZE, 256);
  Port port(name, args);
  if (copies != nullptr && rte_net_vnic_set_copy_engine(port.id, copies) != 0) {
    return state.SkipWithError("the port takes no copy engine");
  }
  if (port.start(pool.get(), setup) != 0) return state.SkipWithError("the port does not start");
  std::uint64_t packets = 0;
  std::uint64_t ticks = 0;
  for (auto _ : state) {
    const std::uint64_t begin = warpline::ticks_now();
    for (unsigned i = 0; i < 1024; ++i) {
      rte_mbuf* mbufs[kBurst];
      const std::uint16_t count = rte_eth_rx_burst(port.id, 0, mbufs, kBurst);
      const std::uint16_t sent = rte_eth_tx_burst(port.id, 0, mbufs, count);
      for (std::uint16_t rest = sent; rest < count; ++rest) rte_pktmbuf_free(mbufs[rest]);
      packets += sent;
    }
    ticks += warpline::ticks_now() - begin;
  }
  state.counters["cycles_per_packet"] = static_cast<double>(ticks) / static_cast<double>(packets);
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
}

void null(benchmark::State& state) { forward(state, "net_null0", "", {.ring = 512}); }
void fast_free(benchmark::State& state) {
  forward(state, "net_vnic0", "wire=static", {.ring = 512, .tx_offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE});
}
void checked_free(benchmark::State& state) { forward(state, "net_vnic0", "wire=static", {.ring = 512}); }
void offloads(benchmark::State& state) {
  forward(state, "net_vnic0", "wire=static",
          {.ring = 512,
           .rx_offloads = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM,
           .tx_offloads = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_MULTI_SEGS});
}
/// What batches of copies cost the driver's core, the copies themselves apart.
void copy_engine(benchmark::State& state) {
  NoCopies copies;
  const rte_net_vnic_copy_engine engine = copies.engine();
  forward(state, "net_vnic0", "wire=static,size=1024", {.ring = 512, .tx_offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE},
          &engine);
}
/// Frames in two mbufs each, of different pools.
void split(benchmark::State& state) {
  const Pool heads(8191, 64 + RTE_PKTMBUF_HEADROOM, 256);
  const Pool rests(8191, RTE_MBUF_DEFAULT_BUF_SIZE, 256);
  rte_eth_rxseg_split first{};
  first.mp = heads.get();
  first.length = 60;
  rte_eth_rxseg_split second{};
  second.mp = rests.get();
  forward(state, "net_vnic0", "wire=static,size=1024",
          {.ring = 1024,
           .rx_offloads = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER,
           .tx_offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS,
           .split = {first, second}});
}
void loopback(benchmark::State& state) {
  const std::string args = "wire=loopback";
  const Pool pool(8191, RTE_MBUF_DEFAULT_BUF_SIZE, 256);
  Port port("net_vnic0", args);
  if (port.start(pool.get(), {.ring = 512, .tx_offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE}) != 0) {
    return state.SkipWithError("the port does not start");
  }
  const std::vector<std::uint8_t> frame(60, 0xff);
  for (unsigned i = 0; i < kBurst; ++i) port.send(pool.make(frame));
  std::uint64_t packets = 0;
  std::uint64_t ticks = 0;
  for (auto _ : state) {
    const std::uint64_t begin = warpline::ticks_now();
    for (unsigned i = 0; i < 1024; ++i) {
      rte_mbuf* mbufs[kBurst];
      const std::uint16_t count = rte_eth_rx_burst(port.id, 0, mbufs, kBurst);
      packets += rte_eth_tx_burst(port.id, 0, mbufs, count);
    }
    ticks += warpline::ticks_now() - begin;
  }
  state.counters["cycles_per_packet"] = static_cast<double>(ticks) / static_cast<double>(packets);
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
}

/// The ways in which buffers come back, forwarding from one port to another.
enum class Way { checked, cache, direct };

void recycling(benchmark::State& state, Way way, bool fast_free, const std::string& refill, std::uint16_t burst) {
  const Pool pool(8191, RTE_MBUF_DEFAULT_BUF_SIZE, 256);
  const std::string args = "wire=static,refill=" + refill;
  Port in("net_vnic0", args);
  Port out("net_vnic1", args);
  const std::uint64_t offloads = fast_free ? RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE : 0;
  if (in.start(pool.get(), {.ring = 512}) != 0 || out.start(pool.get(), {.ring = 512, .tx_offloads = offloads}) != 0) {
    return state.SkipWithError("the ports do not start");
  }
  if (way == Way::cache) rte_net_vnic_set_tx_free(out.id, 0, RTE_NET_VNIC_FREE_CACHE);
  std::uint64_t packets = 0;
  std::uint64_t recycled = 0;
  std::uint64_t ticks = 0;
  for (auto _ : state) {
    const std::uint64_t begin = warpline::ticks_now();
    for (unsigned i = 0; i < 1024; ++i) {
      rte_mbuf* mbufs[kBurst];
      if (way == Way::direct) recycled += rte_net_vnic_recycle_mbufs(in.id, 0, out.id, 0);
      const std::uint16_t count = rte_eth_rx_burst(in.id, 0, mbufs, burst);
      packets += rte_eth_tx_burst(out.id, 0, mbufs, count);
    }
    ticks += warpline::ticks_now() - begin;
  }
  state.counters["cycles_per_packet"] = static_cast<double>(ticks) / static_cast<double>(packets);
  state.counters["recycled"] = static_cast<double>(recycled) / static_cast<double>(packets);
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
}

void register_recycling() {
  for (const std::string refill : {"computed", "mbuf", "ring"}) {
    const auto add = [&](const std::string& name, Way way, bool fast_free) {
      benchmark::RegisterBenchmark(fmt::format("recycle/{}/{}", refill, name).c_str(), recycling, way, fast_free,
                                   refill, kBurst);
      const bool small = refill == "computed";
      if (small) benchmark::RegisterBenchmark(("recycle/burst8/" + name).c_str(), recycling, way, fast_free, refill, 8);
    };
    add("off", Way::checked, false);
    add("cache", Way::cache, false);
    add("direct", Way::direct, false);
    add("fast_free", Way::checked, true);
    add("direct_fast_free", Way::direct, true);
  }
}
[[maybe_unused]] const bool kRegistered = (register_recycling(), true);

BENCHMARK(null);
BENCHMARK(fast_free);
BENCHMARK(checked_free);
BENCHMARK(offloads);
BENCHMARK(copy_engine);
BENCHMARK(split);
BENCHMARK(loopback);

}  // namespace
