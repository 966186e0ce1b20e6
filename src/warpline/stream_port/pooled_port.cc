// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/pooled_port.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include <rte_ethdev.h>

#include "warpline/memory/gpu_memory.h"
#include "warpline/memory/pool_shape.h"
#include "warpline/port/kept_buffers.h"
#include "warpline/port/station_address.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/stream_port/checksum_flags.h"
#include "warpline/stream_port/queue_frames.h"

namespace warpline::stream_port {
namespace {

std::uint32_t buffers(const port::PortSettings& port, const memory::PoolSettings& pool, std::uint32_t queues,
                      const LentFrames& lent) {
  if (pool.size != 0) return pool.size;
  return memory::pool_size({.rx_descriptors = queues * port.rx_ring,
                            .tx_descriptors = queues * port.tx_ring,
                            .in_flight = queues * (QueueFrames::kInHand + lent.most),
                            .lcores = queues + 1,
                            .cache = pool.cache});
}

std::uint32_t room(const port::PortSettings& port, const memory::PoolSettings& pool) {
  return pool.data_room != 0 ? pool.data_room : memory::data_room(port.mtu);
}

/// Has sent buffers collected when an eighth of the ring holds some, where the user does not say otherwise. By
/// themselves drivers wait until the ring is almost full of them: then the next frame is written into a buffer that
/// was last used a ring ago, and is in no near cache any more.
void collect_early(const rte_eth_dev_info& info, const port::PortSettings& setup, port::Port& port) {
  const bool limited = info.tx_desc_lim.nb_max != 0 && info.tx_desc_lim.nb_max < setup.tx_ring;
  const std::uint16_t ring = limited ? info.tx_desc_lim.nb_max : setup.tx_ring;
  const auto held = static_cast<std::uint16_t>(ring / 8);
  // Drivers ask that both thresholds fit into the ring together; they are given bursts of up to kBurst.
  const bool fits = held >= QueueFrames::kBurst && info.default_txconf.tx_rs_thresh <= held;
  if (!setup.tx_rs_thresh && fits) port.wish_tx_free_thresh(static_cast<std::uint16_t>(ring - held));
}

}  // namespace

Result<void> check_vlan(std::uint16_t vlan) {
  constexpr std::uint16_t kLast = 4094;
  if (vlan <= kLast) return {};
  return usage_error(fmt::format("cannot use VLAN {}", vlan), "there is none",
                     "use 1 to 4094, or 0 for untagged frames");
}

PooledPort::PooledPort(memory::PacketPool pool, port::Port port, std::uint16_t mtu)
    : pool_(std::move(pool)), port_(std::move(port)), station_(port::station_address(*port_)), mtu_(mtu) {}

Bytes PooledPort::memory(const port::PortSettings& port, const memory::PoolSettings& pool, std::uint16_t queues,
                         const LentFrames& lent) {
  constexpr std::uint64_t kRingsAndQueues = 16U << 20;
  return Bytes{queues * kRingsAndQueues +
               memory::pool_bytes(buffers(with_longest_rings(port), pool, queues, lent), room(port, pool)).value};
}

Result<PooledPort> PooledPort::open(const port::PortSettings& wanted, const memory::PoolSettings& pool,
                                    std::uint16_t queues, std::string_view name, std::optional<std::uint16_t> adopted,
                                    const LentFrames& lent) {
  static std::atomic<unsigned> made{0};
  if (queues == 0) {
    return usage_error(fmt::format("cannot use port {} without queues", wanted.spec), "frames come and go by them",
                       "use one or more");
  }
  WARPLINE_TRY(port::Port port, adopted ? port::Port::adopt(*adopted) : port::Port::open(wanted.spec));
  rte_eth_dev_info info{};
  if (rte_eth_dev_info_get(port.id(), &info) != 0) {
    return environment_error(fmt::format("port {}: the device does not answer", port.name()), "it is gone",
                             "run `warpline doctor`");
  }
  port::PortSettings setup = wanted;
  ask_for_checksums(info, setup.rx_offloads);
  WARPLINE_CHECK(port.configure(setup, {.rx = queues, .tx = queues}));
  collect_early(info, setup, port);
  setup = port.settings_in_force();
  const runtime::SetupStep step(fmt::format("allocating the buffers of port {}", port.name()));
  const memory::PoolShape shape{.name = fmt::format("{}{}", name, made++),
                                .size = buffers(setup, pool, queues, lent),
                                .cache = pool.cache,
                                .data_room = room(setup, pool),
                                .node = port.node()};
  WARPLINE_TRY(memory::PacketPool packets,
               lent.gpu < 0 ? memory::PacketPool::make(shape)
                            : memory::PacketPool::make_pinned(shape, lent.gpu, memory::GpuMemory::of_machine().pin));
  return PooledPort(std::move(packets), std::move(port), setup.mtu);
}

Result<void> PooledPort::start() {
  WARPLINE_CHECK(port_->attach(pool_.get()));
  return port_->start();
}

void PooledPort::close() {
  if (port_) driver_keeps_ = port::keeps_buffers(*port_);
  port_.reset();
}

}  // namespace warpline::stream_port
