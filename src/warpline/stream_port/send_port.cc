// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/send_port.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include <rte_ethdev.h>

#include "warpline/memory/pool_shape.h"
#include "warpline/port/station_address.h"
#include "warpline/route/prefix.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/stream_port/checksum_flags.h"

namespace warpline::stream_port {
namespace {

/// Frames that the queue has in hand beside those in the device's rings: a burst, what is not sent yet, one to write.
constexpr std::uint32_t kSenderInHand = 4 * SendQueue::kBurst;
constexpr std::uint32_t kEthernetHeader = 14;

std::uint32_t sender_buffers(const port::PortSettings& port, const memory::PoolSettings& pool) {
  if (pool.size != 0) return pool.size;
  return memory::pool_size({.rx_descriptors = port.rx_ring,
                            .tx_descriptors = port.tx_ring,
                            .in_flight = kSenderInHand,
                            .lcores = 2,
                            .cache = pool.cache});
}

std::uint32_t sender_room(const port::PortSettings& port, const memory::PoolSettings& pool) {
  return pool.data_room != 0 ? pool.data_room : memory::data_room(port.mtu);
}

Result<void> check_sending(const port::PortSettings& port, const memory::PoolSettings& pool,
                           const IpAddress& next_hop) {
  if (port.addresses.empty()) {
    return usage_error(fmt::format("cannot send from port {}", port.spec), "it has no address", "give it one");
  }
  if (!route::is_neighbour(port.addresses.front(), next_hop)) {
    return usage_error(fmt::format("cannot reach {} from {}", to_string(next_hop), to_string(port.addresses.front())),
                       "it is not on that link", "name a gateway that is");
  }
  if (pool.data_room != 0 && pool.data_room < port.mtu + kEthernetHeader) {
    return usage_error(fmt::format("cannot use buffers of {} bytes", pool.data_room), "a frame lies in one",
                       fmt::format("use {} or more", port.mtu + kEthernetHeader));
  }
  return {};
}

}  // namespace

Bytes SendPort::memory(const port::PortSettings& port, const memory::PoolSettings& pool) {
  constexpr std::uint64_t kRingsAndQueues = 16U << 20;
  return Bytes{kRingsAndQueues + memory::pool_bytes(sender_buffers(port, pool), sender_room(port, pool)).value};
}

Result<std::unique_ptr<SendPort>> SendPort::open(const port::PortSettings& wanted, const memory::PoolSettings& pool,
                                                 stream::SenderSettings sender, const stream::PayloadSource& source,
                                                 const IpAddress& next_hop, Nanos now,
                                                 std::optional<std::uint16_t> adopted) {
  static std::atomic<unsigned> made{0};
  WARPLINE_CHECK(check_sending(wanted, pool, next_hop));
  std::unique_ptr<SendPort> opened(new SendPort());
  WARPLINE_TRY(port::Port port, adopted ? port::Port::adopt(*adopted) : port::Port::open(wanted.spec));
  rte_eth_dev_info info{};
  if (rte_eth_dev_info_get(port.id(), &info) != 0) {
    return environment_error(fmt::format("port {}: the device does not answer", port.name()), "it is gone",
                             "run `warpline doctor`");
  }
  port::PortSettings setup = wanted;
  ask_for_checksums(info, setup.rx_offloads);
  WARPLINE_CHECK(port.configure(setup, {.rx = 1, .tx = 1}));
  setup = port.settings_in_force();
  {
    const runtime::SetupStep step(fmt::format("allocating the buffers of port {}", port.name()));
    WARPLINE_TRY(memory::PacketPool packets, memory::PacketPool::make({.name = fmt::format("sender{}", made++),
                                                                       .size = sender_buffers(setup, pool),
                                                                       .cache = pool.cache,
                                                                       .data_room = sender_room(setup, pool),
                                                                       .node = port.node()}));
    opened->pool_.emplace(std::move(packets));
  }
  sender.mac = port::station_address(port);
  sender.address = wanted.addresses.front().address;
  sender.mtu = setup.mtu;
  WARPLINE_TRY(stream::StreamSender streams, stream::StreamSender::create(sender, source, now));
  opened->queue_ =
      std::make_unique<SendQueue>(port::PortQueue{port.id(), 0}, opened->pool_->get(), std::move(streams),
                                  route::RouterPort{sender.mac, setup.mtu, {wanted.addresses.front()}}, next_hop);
  opened->port_.emplace(std::move(port));
  WARPLINE_CHECK(opened->port_->attach(opened->pool_->get()));
  WARPLINE_CHECK(opened->port_->start());
  return opened;
}

void SendPort::close() {
  if (queue_) queue_->close();
  port_.reset();
}

}  // namespace warpline::stream_port
