// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/stream_port.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include <rte_ethdev.h>

#include "warpline/memory/pool_shape.h"
#include "warpline/packet/responder.h"
#include "warpline/port/station_address.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/stream_port/checksum_flags.h"

namespace warpline::stream_port {
namespace {

/// Frames that a queue has in hand beside those in the device's rings: a burst, what is not sent yet, one to write.
constexpr std::uint32_t kInHand = 4 * StreamQueue::kBurst;

std::uint32_t buffers(const port::PortSettings& port, const memory::PoolSettings& pool, std::uint32_t queues) {
  if (pool.size != 0) return pool.size;
  return memory::pool_size({.rx_descriptors = queues * port.rx_ring,
                            .tx_descriptors = queues * port.tx_ring,
                            .in_flight = queues * kInHand,
                            .lcores = queues + 1,
                            .cache = pool.cache});
}

std::uint32_t room(const port::PortSettings& port, const memory::PoolSettings& pool) {
  return pool.data_room != 0 ? pool.data_room : memory::data_room(port.mtu);
}

Result<void> check(const port::PortSettings& port, const memory::PoolSettings& pool) {
  if (port.addresses.empty()) {
    return usage_error(fmt::format("cannot listen on port {}", port.spec), "it has no address", "give it one");
  }
  if (pool.data_room != 0 && pool.data_room < stream::StreamReceiver::kReplyBytes) {
    return usage_error(fmt::format("cannot use buffers of {} bytes", pool.data_room), "what is sent lies in one",
                       fmt::format("use {} or more", stream::StreamReceiver::kReplyBytes));
  }
  return {};
}

}  // namespace

Bytes StreamPort::memory(const port::PortSettings& port, const memory::PoolSettings& pool, std::uint16_t queues) {
  constexpr std::uint64_t kRingsAndQueues = 16U << 20;
  return Bytes{queues * kRingsAndQueues + memory::pool_bytes(buffers(port, pool, queues), room(port, pool)).value};
}

Result<std::unique_ptr<StreamPort>> StreamPort::open(const port::PortSettings& wanted, const memory::PoolSettings& pool,
                                                     stream::ReceiverSettings receiver, Nanos now,
                                                     std::optional<std::uint16_t> adopted, std::uint16_t queues) {
  static std::atomic<unsigned> made{0};
  WARPLINE_CHECK(check(wanted, pool));
  std::unique_ptr<StreamPort> opened(new StreamPort());
  WARPLINE_TRY(port::Port port, adopted ? port::Port::adopt(*adopted) : port::Port::open(wanted.spec));
  rte_eth_dev_info info{};
  if (rte_eth_dev_info_get(port.id(), &info) != 0) {
    return environment_error(fmt::format("port {}: the device does not answer", port.name()), "it is gone",
                             "run `warpline doctor`");
  }
  port::PortSettings setup = wanted;
  ask_for_checksums(info, setup.rx_offloads);
  WARPLINE_CHECK(port.configure(setup, {.rx = queues, .tx = queues}));
  setup = port.settings_in_force();
  {
    const runtime::SetupStep step(fmt::format("allocating the buffers of port {}", port.name()));
    WARPLINE_TRY(memory::PacketPool packets, memory::PacketPool::make({.name = fmt::format("stream{}", made++),
                                                                       .size = buffers(setup, pool, queues),
                                                                       .cache = pool.cache,
                                                                       .data_room = room(setup, pool),
                                                                       .node = port.node()}));
    opened->pool_.emplace(std::move(packets));
  }
  receiver.mac = port::station_address(port);
  receiver.address = wanted.addresses.front().address;
  receiver.mtu = setup.mtu;
  {
    const runtime::SetupStep step("mapping the rings of connections");
    for (std::uint16_t i = 0; i < queues; ++i) {
      WARPLINE_TRY(stream::StreamReceiver streams, stream::StreamReceiver::create(receiver, now));
      opened->queues_.push_back(
          std::make_unique<StreamQueue>(port::PortQueue{port.id(), i}, opened->pool_->get(), std::move(streams),
                                        packet::Responder(receiver.mac, wanted.addresses.front())));
    }
  }
  opened->port_.emplace(std::move(port));
  WARPLINE_CHECK(opened->port_->attach(opened->pool_->get()));
  WARPLINE_CHECK(opened->port_->start());
  return opened;
}

void StreamPort::close() {
  for (const auto& queue : queues_) queue->close();
  port_.reset();
}

}  // namespace warpline::stream_port
