// SPDX-License-Identifier: Apache-2.0
#include "bench/recycle_rig.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <numeric>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "bench/recycle_mix.h"
#include "warpline/datapath/run_to_completion.h"
#include "warpline/port/ring_pair.h"
#include "warpline/workload/with_workload.h"

namespace warpline::bench {
namespace {

constexpr std::uint16_t kMtu = 1500;
constexpr std::uint16_t kBatch = 32;  ///< descriptors that a transmit queue completes and frees at a time
constexpr std::uint64_t kMixSeed = 20211;

/// Ports of a mix: what is received, where most leaves, where the rest leaves, where clones do.
enum MixPort : std::uint16_t { kIn, kOut, kElsewhere, kMirror };

/// Ordinary memory in place of a GPU's: a pool of external buffers in it costs the CPU what one in GPU memory does.
Result<memory::OwnedMemory> map_memory(int /*gpu*/, Bytes size, Bytes alignment) {
  const std::size_t whole = size.value + alignment.value;
  void* const start = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return environment_error("external buffers", "no memory", "free some");
  const std::uintptr_t skip = alignment.value - reinterpret_cast<std::uintptr_t>(start) % alignment.value;
  return memory::OwnedMemory{{static_cast<std::byte*>(start) + skip, size.value},
                             std::shared_ptr<void>(start, [whole](void* memory) { munmap(memory, whole); })};
}

port::PortSettings port_config(const RecycleSetting& setting) {
  port::PortSettings config;
  config.rx_ring = config.tx_ring = setting.ring;
  config.mtu = kMtu;
  if (setting.driver == "net_vnic") {
    config.tx_rs_thresh = config.tx_free_thresh = kBatch;
    // The ring is refilled half at a time, so that many bursts in between need not.
    config.rx_free_thresh = setting.probe == RecycleProbe::floor ? setting.ring / 2 : kBatch;
  }
  return config;
}

std::optional<std::uint64_t> counter_id(std::uint16_t port, const char* name) {
  std::uint64_t id = 0;
  if (rte_eth_xstats_get_id_by_name(port, name, &id) != 0) return std::nullopt;
  return id;
}

}  // namespace

Bytes recycle_rig_memory() {
  constexpr std::uint64_t kTables = 160 << 20;
  return {2 * memory::pool_bytes(16383, memory::data_room(kMtu)).value + kTables};
}

Result<std::unique_ptr<RecycleRig>> RecycleRig::make(const RecycleSetting& setting) {
  std::unique_ptr<RecycleRig> rig(new RecycleRig(setting));
  WARPLINE_CHECK(rig->open_ports());
  WARPLINE_CHECK(rig->make_pools());
  WARPLINE_CHECK(rig->set_up());
  WARPLINE_CHECK(rig->make_stages());
  for (port::Port& port : rig->ports_) WARPLINE_CHECK(port.start());
  if (setting.driver == "net_ring") WARPLINE_CHECK(rig->circulate());
  return rig;
}

RecycleRig::~RecycleRig() {
  for (port::Port& port : ports_) port.stop();
}

Result<void> RecycleRig::open_ports() {
  const bool mix = setting_.loop == RecycleLoop::mix;
  if (setting_.driver == "net_ring") {
    WARPLINE_TRY(const auto pair, port::make_ring_pair(1, setting_.ring, runtime::kAnyNode));
    for (const std::uint16_t id : {pair.first, pair.second}) {
      WARPLINE_TRY(port::Port port, port::Port::adopt(id));
      ports_.push_back(std::move(port));
    }
  } else {
    const int count = mix ? kElsewhere + 1 + (setting_.cloned_percent != 0 ? 1 : 0) : 2;
    for (int i = 0; i < count; ++i) {
      std::string spec = fmt::format("{}{}", setting_.driver, i);
      if (setting_.driver == "net_vnic") {
        spec += fmt::format(",wire=static,size={},refill={}", kRecycleFrameBytes, setting_.refill);
      }
      WARPLINE_TRY(port::Port port, port::Port::open(spec));
      ports_.push_back(std::move(port));
    }
  }
  receivers_ = mix ? 1 : 2;
  // As the commands promise: not for clones, whose buffers are others', nor for external ones; and what `l3forward`
  // sends may come from any port's pool.
  const bool promise = memory::wants_fast_free(setting_.way) && setting_.cloned_percent == 0 && !setting_.external &&
                       setting_.loop != RecycleLoop::l3forward;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    const std::uint16_t queues = mix && i == kOut ? setting_.queues : std::uint16_t{1};
    WARPLINE_CHECK(ports_[i].configure(port_config(setting_), {.rx = 1, .tx = queues, .one_pool = promise}));
  }
  return {};
}

Result<void> RecycleRig::make_pools() {
  const bool mix = setting_.loop == RecycleLoop::mix;
  const std::size_t count = mix ? 1 : ports_.size();
  const auto receiving = static_cast<std::uint32_t>(mix ? ports_.size() : 1);
  const std::uint32_t sending = mix ? receiving + setting_.queues : 1;
  memory::PoolShape shape{.name = {},
                          .size = memory::pool_size({.rx_descriptors = receiving * setting_.ring,
                                                     .tx_descriptors = sending * setting_.ring,
                                                     .in_flight = 8U * setting_.burst,
                                                     .lcores = 2,
                                                     .cache = setting_.cache}),
                          .cache = setting_.cache,
                          .data_room = memory::data_room(kMtu),
                          .node = runtime::kAnyNode};
  for (std::size_t i = 0; i < count; ++i) {
    shape.name = fmt::format("bench{}", i);
    WARPLINE_TRY(memory::PacketPool pool, setting_.external ? memory::PacketPool::make_device(shape, 0, map_memory)
                                                            : memory::PacketPool::make(shape));
    pools_.push_back(std::move(pool));
  }
  if (setting_.cloned_percent != 0) {
    shape.name = "clones";
    WARPLINE_TRY(clones_, memory::PacketPool::make(shape));
  }
  return {};
}

Result<void> RecycleRig::set_up() {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    for (const memory::PacketPool& pool : pools_) {
      if (!pool.external().empty()) WARPLINE_CHECK(ports_[i].map(pool.external()));
    }
    WARPLINE_CHECK(ports_[i].attach(pools_[std::min(i, pools_.size() - 1)].get()));
    const auto ticks = counter_id(ports_[i].id(), "engine_cycles");
    const auto calls = counter_id(ports_[i].id(), "engine_calls");
    engine_counters_.push_back(ticks && calls ? std::optional(std::pair(*ticks, *calls)) : std::nullopt);
  }
  recycling_ = memory::set_up_recycling(plan());
  return {};
}

memory::RecyclePlan RecycleRig::plan() const {
  memory::RecyclePlan plan;
  plan.way = setting_.way;
  memory::RecycleQueues lcore;
  if (setting_.loop == RecycleLoop::mix) {
    lcore.rx = {{ports_[kIn].id(), 0}};
    for (std::uint16_t queue = 0; queue < setting_.queues; ++queue) {
      lcore.tx.push_back({ports_[kOut].id(), queue});
      plan.links.push_back({lcore.rx.front(), lcore.tx.back()});
    }
    for (std::size_t i = kElsewhere; i < ports_.size(); ++i) lcore.tx.push_back({ports_[i].id(), 0});
  } else {
    for (std::size_t i = 0; i < 2; ++i) {
      // A routing loop counts its transmit queues by port, and where packets leave is not known before they come.
      const bool routes = setting_.loop == RecycleLoop::l3forward;
      lcore.rx.push_back({ports_[i].id(), 0});
      lcore.tx.push_back({ports_[routes ? i : 1 - i].id(), 0});
      if (!routes) plan.links.push_back({lcore.rx.back(), lcore.tx.back()});
    }
  }
  if (setting_.probe == RecycleProbe::two_lcores) {
    plan.lcores = {{lcore.rx, {}}, {{}, lcore.tx}};
  } else {
    plan.lcores = {std::move(lcore)};
  }
  return plan;
}

datapath::QueuePath& RecycleRig::add_path(port::PortQueue rx, port::PortQueue tx) {
  paths_.push_back(std::make_unique<datapath::QueuePath>());
  datapath::QueuePath& path = *paths_.back();
  path.rx = rx;
  path.tx = tx;
  path.reply = tx;
  path.burst = setting_.burst;
  path.deadline_ticks = 0;
  path.tx_retries = datapath::ForwardSettings{}.tx_retries;
  path.counts_bytes = setting_.touched;
  return path;
}

Result<void> RecycleRig::make_stages() {
  memory::Recycler* const recycler = recycling_.lcores.front().get();
  const auto own = [&](std::unique_ptr<datapath::Stage> stage) {
    stages_.push_back(stage.get());
    own_stages_.push_back(std::move(stage));
  };
  if (setting_.loop == RecycleLoop::mix) {
    std::vector<datapath::QueuePath*> paths;
    const memory::RecyclePlan queues = plan();
    for (const port::PortQueue tx : queues.lcores.front().tx) {
      paths.push_back(&add_path(queues.lcores.front().rx.front(), tx));
    }
    paths.front()->recycler = recycler;
    const MixingShares shares{setting_.queues, setting_.elsewhere_percent, setting_.cloned_percent};
    own(std::make_unique<MixingStage>(paths, shares, clones_ ? clones_->get() : nullptr, kMixSeed));
    return {};
  }
  const bool routes = setting_.loop == RecycleLoop::l3forward;
  std::vector<datapath::QueuePath*> paths;
  for (std::uint16_t i = 0; i < 2; ++i) {
    const std::uint16_t out = ports_[routes ? i : 1 - i].id();
    datapath::QueuePath& path = add_path({ports_[i].id(), 0}, {out, 0});
    path.recycler = recycler;
    path.recycle_index = i;
    paths.push_back(&path);
    if (routes) continue;
    if (setting_.touched) {
      using Work = workload::FrameLimits<workload::MacSwap>;
      own(std::make_unique<datapath::RunToCompletion<Work>>(path, budget_, Work(workload::MacSwap{}, kMtu)));
    } else {
      own(std::make_unique<datapath::RunToCompletion<workload::NoWork>>(path, budget_, workload::NoWork{}));
    }
  }
  if (!routes) return {};
  WARPLINE_TRY(routes_, BenchRoutes::make(ports_, paths, {pools_[0].get(), pools_[1].get()}, kRecycleFrameBytes));
  stages_.push_back(routes_->stage());
  return {};
}

/// Ports that only pass pointers on need some to pass: a burst for each direction.
Result<void> RecycleRig::circulate() {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    std::vector<rte_mbuf*> mbufs(setting_.burst);
    if (rte_pktmbuf_alloc_bulk(pools_[i].get(), mbufs.data(), setting_.burst) != 0) {
      return environment_error("packets to begin with", "the pool is empty");
    }
    for (rte_mbuf* mbuf : mbufs) rte_pktmbuf_append(mbuf, kRecycleFrameBytes);
    const std::uint16_t sent = rte_eth_tx_burst(ports_[i].id(), 0, mbufs.data(), setting_.burst);
    rte_pktmbuf_free_bulk(mbufs.data() + sent, setting_.burst - sent);
  }
  return {};
}

std::uint64_t RecycleRig::poll(std::uint32_t rounds) {
  std::uint64_t moved = 0;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (datapath::Stage* stage : stages_) moved += stage->poll();
  }
  return moved;
}

std::uint32_t RecycleRig::make_room() {
  for (const port::Port& port : ports_) rte_eth_tx_done_cleanup(port.id(), 0, 0);
  static_cast<void>(poll(1));  // refills
  return setting_.ring / 2U / setting_.burst - 1;
}

EngineTime RecycleRig::engine() const {
  EngineTime time;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (!engine_counters_[i]) continue;
    const std::uint64_t ids[] = {engine_counters_[i]->first, engine_counters_[i]->second};
    std::uint64_t values[2]{};
    if (rte_eth_xstats_get_by_id(ports_[i].id(), ids, values, 2) != 2) continue;
    time.ticks += values[0];
    time.calls += values[1];
  }
  return time;
}

std::uint64_t RecycleRig::most_packets() const {
  if (setting_.loop != RecycleLoop::l3forward) return 0;
  return std::uint64_t{BenchRoutes::kHops} * receivers_ * setting_.ring;
}

void RecycleRig::drain_rings() {
  for (const port::Port& port : ports_) {
    rte_mbuf* mbufs[kBatch];
    while (const std::uint16_t count = rte_eth_rx_burst(port.id(), 0, mbufs, kBatch)) {
      rte_pktmbuf_free_bulk(mbufs, count);
    }
  }
}

Result<RecycleRig::Totals> RecycleRig::finish() {
  for (datapath::Stage* stage : stages_) static_cast<void>(stage->drain());
  if (setting_.driver == "net_ring") drain_rings();
  Totals totals;
  totals.recycled = recycling_.recycled().value_or(0);
  for (const auto& path : paths_) {
    totals.received += path->received.packets.get();
    totals.dropped += path->sent.drops.total();
  }
  for (const port::Port& port : ports_) {
    const auto counters = port.extended_counters();
    const auto get = [&](const char* name) {
      const auto found = counters.find(name);
      return found == counters.end() ? std::uint64_t{0} : found->second;
    };
    totals.gets += get("mempool_gets");
    totals.puts += get("mempool_puts");
  }
  for (port::Port& port : ports_) port.stop();
  std::uint32_t missing = clones_ ? clones_->in_use() : 0;
  for (const memory::PacketPool& pool : pools_) missing += pool.in_use();
  if (missing == 0) return totals;
  return Error{ErrorKind::verification, describe(setting_), fmt::format("{} buffers did not come back", missing), ""};
}

}  // namespace warpline::bench
