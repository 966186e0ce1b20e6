// SPDX-License-Identifier: Apache-2.0
#include "pipeline/forward_ports.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "pipeline/recycle_plan.h"

namespace warpline {

Bytes ForwardPorts::host_memory() const {
  constexpr std::uint64_t kRingsAndQueues = 16U << 20;
  std::uint64_t bytes = kRingsAndQueues;
  const auto add = [&](const PortConfig& port, const PoolConfig& pool) {
    bytes += host_bytes(pools_plan("", port, pool, kAnyNode)).value;
  };
  for (const PortConfig& port : config_.ports) add(port, config_.pool);
  if (config_.forward.loopback) {
    add(config_.port_defaults, config_.pool);
    add(config_.port_defaults, far_pool());
  }
  return Bytes{bytes};
}

Result<void> ForwardPorts::open() {
  if (config_.forward.loopback) {
    WARPLINE_CHECK(open_loopback());
  } else {
    for (std::size_t i = 0; i < config_.ports.size(); ++i) {
      const PortConfig& port = config_.ports[i];
      WARPLINE_CHECK(open(port.spec, port, layout_.tx_queues(config_, static_cast<std::uint16_t>(i)), config_.pool));
    }
  }
  return start();
}

/// Whatever the far side has on its way fits a packet buffer, even if RSS steers all of it to one queue, so nothing is
/// lost for want of room.
Result<void> ForwardPorts::open_loopback() {
  constexpr std::uint32_t kFrameOverhead = 64;
  const std::uint32_t buffer =
      std::bit_ceil(std::max(config_.forward.pipelines * window() * (max_frame_ + kFrameOverhead), 1U << 20));
  for (const int index : {0, 1}) {
    const std::string spec = fmt::format("net_vnic{},wire=net_vnic{},buffer={}", index, 1 - index, buffer);
    WARPLINE_CHECK(
        open(spec, config_.port_defaults, config_.forward.pipelines, index == 0 ? config_.pool : far_pool()));
  }
  return {};
}

Result<void> ForwardPorts::open(const std::string& spec, const PortConfig& config, std::uint16_t tx_queues,
                                const PoolConfig& pool) {
  WARPLINE_TRY(Port port, Port::open(spec));
  // What leaves by a queue was received by one queue of one port; frames to send first come from elsewhere.
  const bool wanted = is_far(ports_.size()) || wants_fast_free(config_.forward.recycle);
  const bool one_pool = wanted && !layout_.mixes_ports && pool.split == 0 && config_.forward.tx_first == 0;
  WARPLINE_CHECK(port.configure(config, {.rx = config_.forward.pipelines, .tx = tx_queues, .one_pool = one_pool}));
  WARPLINE_TRY(PortPools pools,
               PortPools::make(pools_plan(fmt::format("port{}", ports_.size()), config, pool, port.node())));
  pools_.push_back(std::move(pools));
  ports_.push_back(std::move(port));
  return {};
}

/// Any port may transmit from any other's pool, so all memory is known to all before one starts.
Result<void> ForwardPorts::start() {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    for (const PortPools& pools : pools_) {
      for (const std::span<std::byte> memory : pools.external()) WARPLINE_CHECK(ports_[i].map(memory));
    }
    WARPLINE_CHECK(ports_[i].attach(pools_[i].queues()));
    if (!pools_[i].external().empty()) WARPLINE_CHECK(copies_.install(ports_[i]));
  }
  std::vector<std::uint16_t> ids;
  for (const Port& port : ports_) ids.push_back(port.id());
  recycling_ = set_up_recycling(recycle_plan(config_, layout_, ids));
  for (Port& port : ports_) WARPLINE_CHECK(port.start());
  return {};
}

void ForwardPorts::stop() {
  for (Port& port : ports_) port.stop();
}

std::vector<ForwardPort> ForwardPorts::near() const {
  std::vector<ForwardPort> near;
  const std::size_t count = config_.forward.loopback ? 1 : ports_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const PortConfig& config = config_.forward.loopback ? config_.port_defaults : config_.ports[i];
    near.push_back({ports_[i].id(), ports_[i].setup().mtu, ports_[i].mac(), std::nullopt});
    if (!config.addresses.empty()) near.back().address = config.addresses.front();
  }
  return near;
}

Bytes ForwardPorts::gpu_memory() const {
  std::uint64_t bytes = 0;
  for (const PortPools& pools : pools_) bytes += pools.gpu_bytes().value;
  return {bytes};
}

/// Buffers for what `port` receives, wherever they can be.
std::uint32_t ForwardPorts::buffers(const PortConfig& port, const PoolConfig& pool) const {
  if (pool.size != 0) return pool.size;
  const bool shared = pool.sharing == PoolSharing::shared;
  const std::uint32_t queues = shared ? config_.forward.pipelines : 1;
  const auto senders = layout_.mixes_ports ? static_cast<std::uint32_t>(config_.ports.size()) : 1U;
  const std::uint32_t bursts = config_.forward.ring_slots + 2U;
  PoolDemand demand{.rx_descriptors = port.rx_ring * queues,
                    .tx_descriptors = port.tx_ring * queues * senders,
                    .in_flight = config_.forward.burst * bursts * queues,
                    .lcores = static_cast<std::uint32_t>(layout_.roles.size()) + 1,
                    .cache = pool.cache};
  if (config_.forward.loopback) demand.in_flight += (window() + config_.traffic.burst) * queues;
  demand.in_flight += config_.forward.tx_first;
  return pool_size(demand);
}

PortPoolsPlan ForwardPorts::pools_plan(const std::string& name, const PortConfig& port, const PoolConfig& pool,
                                       int node) const {
  return {.name = name,
          .config = pool,
          .size = buffers(port, pool),
          .data_room = pool.data_room != 0 ? pool.data_room : data_room(port.mtu),
          .queues = config_.forward.pipelines,
          .gpus = config_.forward.gpus,
          .node = node};
}

/// The far side writes and reads its frames itself, whatever the near one keeps them in.
PoolConfig ForwardPorts::far_pool() const {
  PoolConfig pool = config_.pool;
  pool.memory = MemoryKind::host;
  pool.sharing = PoolSharing::shared;
  pool.split = 0;
  return pool;
}

}  // namespace warpline
