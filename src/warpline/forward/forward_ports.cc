// SPDX-License-Identifier: Apache-2.0
#include "warpline/forward/forward_ports.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <ranges>
#include <utility>

#include "warpline/datapath/batch.h"
#include "warpline/datapath/recycle_plan.h"
#include "warpline/datapath/run_inputs.h"
#include "warpline/port/ring_pair.h"
#include "warpline/port/vnic.h"
#include "warpline/runtime/setup_step.h"

namespace warpline::forward {

Bytes ForwardPorts::host_memory() const {
  constexpr std::uint64_t kRingsAndQueues = 16U << 20;
  std::uint64_t bytes = kRingsAndQueues;
  const auto add = [&](Side side, const port::PortSettings& port, const memory::PoolSettings& pool) {
    bytes += memory::host_bytes(pools_plan(side, "", port, pool, runtime::kAnyNode)).value;
  };
  if (settings_.forward.loopback) {
    add(Side::near, with_longest_rings(port_settings(0)), settings_.pool);
    add(Side::far, with_longest_rings(port_settings(1)), far_pool());
    return Bytes{bytes};
  }
  for (const port::PortSettings& port : settings_.ports) add(Side::near, with_longest_rings(port), settings_.pool);
  return Bytes{bytes};
}

Result<void> ForwardPorts::open() {
  if (hands_over_) {
    WARPLINE_CHECK(open_rings());
  } else {
    for (const std::string& spec : specs()) {
      WARPLINE_TRY(port::Port port, port::Port::open(spec));
      ports_.push_back(std::move(port));
    }
  }
  one_pool_ = layout_.mixes_ports && settings_.pool.sharing == memory::PoolSharing::shared &&
              std::ranges::all_of(ports_, [&](const port::Port& port) { return port.node() == ports_.front().node(); });
  for (std::uint16_t i = 0; i < ports_.size(); ++i) WARPLINE_CHECK(configure(i));
  const std::size_t pools = one_pool_ ? 1 : settings_.forward.loopback ? 2 : ports_.size();
  for (std::uint16_t i = 0; i < pools; ++i) WARPLINE_CHECK(make_pools(i));
  return start();
}

std::uint32_t ForwardPorts::window() const {
  std::uint32_t ring = UINT16_MAX;
  for (std::size_t port = 0; port < 2; ++port) {
    const bool configured = port < ports_.size() && ports_[port].setup().rx_ring != 0;
    const port::PortSettings settings =
        configured ? ports_[port].settings_in_force() : with_longest_rings(port_settings(port));
    ring = std::min<std::uint32_t>({ring, settings.rx_ring, settings.tx_ring});
  }
  const std::uint32_t room =
      settings_.pool.data_room != 0 ? settings_.pool.data_room : memory::data_room(port_settings(0).mtu);
  const std::uint32_t split = settings_.pool.split;
  const std::uint32_t payload = far_traffic_.max_frame - std::min(far_traffic_.max_frame, split);
  const std::uint32_t segments = (split != 0 ? 1 : 0) + (payload + room - 1) / room;
  return std::max(1U, std::min(ring / 2, ring * 3 / 4 / std::max(1U, segments)));
}

/// Returns one spec per port. In a loopback of its own all frames that the far side has in flight fit one packet
/// buffer, even if RSS steers all of them to one queue, so none is lost for lack of buffer space.
std::vector<std::string> ForwardPorts::specs() const {
  std::vector<std::string> specs;
  for (const port::PortSettings& port : settings_.ports) {
    specs.push_back(datapath::spec_in_force(port.spec, settings_.pool.memory));
  }
  if (!settings_.own_loopback()) return specs;
  constexpr std::uint32_t kFrameOverhead = 64;
  const std::uint32_t buffer = std::bit_ceil(
      std::max(settings_.forward.pipelines * window() * (far_traffic_.max_frame + kFrameOverhead), 1U << 20));
  for (const int index : {0, 1}) {
    specs.push_back(fmt::format("net_vnic{},wire=net_vnic{},buffer={}", index, 1 - index, buffer));
    if (const std::string& persona = settings_.forward.persona; index == 0 && !persona.empty()) {
      specs.back() = datapath::spec_in_force(specs.back() + ",persona=" + persona, settings_.pool.memory);
    }
    // Faults are of the frames that a port sends: of the far one.
    if (index == 1 && !settings_.loopback_faults.empty()) specs.back() += "," + settings_.loopback_faults;
  }
  return specs;
}

/// A loopback's ports in a program without net_vnic. A ring has room for twice what the far side has on its way.
Result<void> ForwardPorts::open_rings() {
  WARPLINE_TRY(const auto pair,
               port::make_ring_pair(settings_.forward.pipelines, std::bit_ceil(settings_.loopback_port.rx_ring),
                                    runtime::kAnyNode));
  for (const std::uint16_t id : {pair.first, pair.second}) {
    WARPLINE_TRY(port::Port port, port::Port::adopt(id));
    ports_.push_back(std::move(port));
  }
  return {};
}

Result<void> ForwardPorts::configure(std::uint16_t index) {
  // What leaves by a queue is of one pool: it was received by one queue of one port, or all ports share theirs. Frames
  // to send first come from elsewhere.
  const bool wanted = is_far(index) || memory::wants_fast_free(settings_.forward.recycle);
  const bool of_one_pool = (one_pool_ || !layout_.mixes_ports) && (is_far(index) || settings_.pool.split == 0) &&
                           settings_.forward.tx_first == 0;
  const std::uint16_t tx =
      settings_.forward.loopback ? settings_.forward.pipelines : layout_.tx_queues(settings_, index);
  return ports_[index].configure(port_settings(index),
                                 {.rx = settings_.forward.pipelines, .tx = tx, .one_pool = wanted && of_one_pool});
}

Result<void> ForwardPorts::make_pools(std::uint16_t index) {
  const port::Port& port = is_far(index) ? far() : ports_[index];
  const memory::PoolSettings pool = is_far(index) ? far_pool() : settings_.pool;
  const Side side = is_far(index) ? Side::far : Side::near;
  memory::PortPoolsPlan plan =
      pools_plan(side, fmt::format("port{}", index), port.settings_in_force(), pool, port.node());
  if (one_pool_) {
    for (const port::Port& other : ports_ | std::views::drop(1)) {
      const memory::PortPoolsPlan more = pools_plan(side, "", other.settings_in_force(), pool, port.node());
      if (pool.size == 0) plan.size += more.size;
      plan.data_room = std::max(plan.data_room, more.data_room);
    }
  }
  const runtime::SetupStep step(fmt::format("allocating the buffers of port {}", port.name()));
  WARPLINE_TRY(memory::PortPools pools, memory::PortPools::make(plan));
  pools_.push_back(std::move(pools));
  return {};
}

/// Any port may transmit from any other's pool, so all memory is known to all before one starts.
Result<void> ForwardPorts::start() {
  if (hands_over_ && !settings_.loopback_faults.empty()) return port::built_without_vnic("--loopback with --faults");
  if (hands_over_ && !settings_.forward.persona.empty()) return port::built_without_vnic("--loopback with --persona");
  if (hands_over_ && (settings_.pool.split != 0 || settings_.pool.memory == memory::MemoryKind::device)) {
    return port::built_without_vnic(settings_.pool.split != 0 ? "--loopback with --split"
                                                              : "--loopback with --memory device");
  }
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    for (const memory::PortPools& pools : pools_) {
      for (const std::span<std::byte> memory : pools.external()) WARPLINE_CHECK(ports_[i].map(memory));
    }
    WARPLINE_CHECK(ports_[i].attach(pools_of(i).queues()));
    const runtime::SetupStep step(fmt::format("setting up the GPU's copies for port {}", ports_[i].name()));
    if (!pools_of(i).external().empty()) WARPLINE_CHECK(copies_.install(ports_[i]));
  }
  std::vector<std::uint16_t> ids;
  for (const port::Port& port : ports_) ids.push_back(port.id());
  recycling_ = memory::set_up_recycling(datapath::recycle_plan(settings_, layout_, ids));
  for (port::Port& port : ports_) WARPLINE_CHECK(port.start());
  return {};
}

void ForwardPorts::stop() {
  copies_.stop();
  for (port::Port& port : ports_) port.stop();
}

std::vector<ForwardPort> ForwardPorts::near() const {
  std::vector<ForwardPort> near;
  const std::size_t count = settings_.forward.loopback ? 1 : ports_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const port::PortSettings& settings = port_settings(i);
    near.push_back({ports_[i].id(), ports_[i].setup().mtu, ports_[i].mac(), std::nullopt});
    if (settings.addresses.empty()) continue;
    near.back().address = settings.addresses.front();
    near.back().watch = ports_[i].watches().data();
  }
  return near;
}

Bytes ForwardPorts::gpu_memory() const {
  std::uint64_t bytes = 0;
  for (const memory::PortPools& pools : pools_) bytes += pools.gpu_bytes().value;
  return {bytes};
}

/// Returns the packets that the burst rings of so many queues of one pool hold at most. The program's own loopback in a
/// closed loop has no more than the windows of all streams in flight, which RSS may steer to one queue. It gives frames
/// up that are late and sends others, so twice as many are allowed for. Wires with faults deliver frames twice.
std::uint32_t ForwardPorts::bursts_hold(std::uint32_t queues) const {
  const std::uint32_t all = settings_.forward.most_held() * queues;
  const bool bounded = far_traffic_.closed_loop && settings_.own_loopback() && settings_.loopback_faults.empty();
  return bounded ? std::min(all, 2 * window() * settings_.forward.pipelines) : all;
}

/// Returns the buffers for what `port` receives, wherever they can be. The far side of a loopback keeps none in bursts,
/// unless the near one gets those very buffers.
std::uint32_t ForwardPorts::buffers(Side side, const port::PortSettings& port, const memory::PoolSettings& pool) const {
  if (pool.size != 0) return pool.size;
  const bool shared = pool.sharing == memory::PoolSharing::shared;
  const std::uint32_t queues = shared ? settings_.forward.pipelines : 1;
  // If all ports share one pool, each port counts only its own descriptors.
  const bool elsewhere = layout_.mixes_ports && !one_pool_;
  const auto senders = elsewhere ? static_cast<std::uint32_t>(settings_.ports.size()) : 1U;
  // What was just received and is being copied, or waits for the next burst because this one has no room.
  const std::uint32_t bound = settings_.forward.adaptive_burst ? port::kLeastRequest : 2U * settings_.forward.burst;
  const std::uint32_t beyond = settings_.forward.frees_at_once ? std::uint32_t{datapath::kMaxBurst} : bound;
  const bool in_bursts = side == Side::near || hands_over_;
  const std::uint32_t held = in_bursts ? bursts_hold(queues) + beyond * queues : 0;
  memory::PoolDemand demand{.rx_descriptors = port.rx_ring * queues,
                            .tx_descriptors = port.tx_ring * queues * senders,
                            .in_flight = held,
                            .lcores = static_cast<std::uint32_t>(layout_.roles.size()) + 1,
                            .cache = pool.cache};
  if (settings_.forward.loopback) demand.in_flight += (window() + far_traffic_.burst) * queues;
  demand.in_flight += settings_.forward.tx_first;
  return memory::pool_size(demand);
}

memory::PortPoolsPlan ForwardPorts::pools_plan(Side side, const std::string& name, const port::PortSettings& port,
                                               const memory::PoolSettings& pool, int node) const {
  return {.name = name,
          .settings = pool,
          .size = buffers(side, port, pool),
          .data_room = pool.data_room != 0 ? pool.data_room : memory::data_room(port.mtu),
          .queues = settings_.forward.pipelines,
          .gpus = settings_.forward.gpus,
          .node = node};
}

/// The far side writes and reads its frames itself, whatever the near one keeps them in; unless that gets those very
/// buffers.
memory::PoolSettings ForwardPorts::far_pool() const {
  memory::PoolSettings pool = settings_.pool;
  if (!hands_over_) pool.memory = memory::MemoryKind::host;
  pool.sharing = memory::PoolSharing::shared;
  pool.split = 0;
  return pool;
}

}  // namespace warpline::forward
