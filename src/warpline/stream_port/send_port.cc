// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/send_port.h"

#include <fmt/format.h>

#include <utility>

#include "warpline/route/prefix.h"

namespace warpline::stream_port {
namespace {

Result<void> check_sending(const port::PortSettings& port, const memory::PoolSettings& pool,
                           const IpAddress& next_hop) {
  constexpr std::uint32_t kEthernetHeader = 14;
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

Result<std::unique_ptr<SendPort>> SendPort::open(const port::PortSettings& port, const memory::PoolSettings& pool,
                                                 stream::SenderSettings sender,
                                                 std::span<const stream::PayloadSource* const> sources,
                                                 const IpAddress& next_hop, Nanos now,
                                                 std::optional<std::uint16_t> adopted, std::uint16_t vlan,
                                                 const PayloadSetup& payload) {
  WARPLINE_CHECK(check_sending(port, pool, next_hop));
  WARPLINE_CHECK(check_vlan(vlan));
  const auto queues = static_cast<std::uint16_t>(sources.size());
  WARPLINE_TRY(PooledPort device, PooledPort::open(port, pool, queues, "sender", adopted, payload.frames()));
  std::unique_ptr<SendPort> opened(new SendPort(std::move(device)));
  const InterfaceAddress& own = port.addresses.front();
  sender.mac = opened->device_.station();
  sender.address = own.address;
  sender.mtu = opened->device_.mtu();
  const auto shared = std::make_shared<SendShared>(queues, sender.first_port);
  for (std::uint16_t i = 0; i < queues; ++i) {
    sender.first_port = shared->exchange.first_port(i);
    sender.last_port = static_cast<std::uint16_t>(sender.first_port + shared->exchange.ports() - 1);
    WARPLINE_TRY(stream::StreamSender streams, stream::StreamSender::create(sender, *sources[i], now));
    std::unique_ptr<PayloadStage> stage;
    if (payload.make) {
      WARPLINE_TRY(auto lane, payload.make({sender.connections, payload.ring_bytes}, i));
      stage = std::make_unique<PayloadStage>(std::move(lane), payload.patience);
    }
    opened->queues_.push_back(
        std::make_unique<SendQueue>(port::PortQueue{opened->port().id(), i}, opened->device_.pool(), std::move(streams),
                                    route::RouterPort{sender.mac, sender.mtu, {own}}, next_hop, shared, vlan,
                                    std::move(stage), opened->port().watches().data()));
  }
  WARPLINE_CHECK(opened->device_.start());
  return opened;
}

void SendPort::close() {
  for (const auto& queue : queues_) queue->close();
  device_.close();
}

}  // namespace warpline::stream_port
