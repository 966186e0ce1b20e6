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
                                                 stream::SenderSettings sender, const stream::PayloadSource& source,
                                                 const IpAddress& next_hop, Nanos now,
                                                 std::optional<std::uint16_t> adopted, std::uint16_t vlan,
                                                 const PayloadSetup& payload) {
  WARPLINE_CHECK(check_sending(port, pool, next_hop));
  WARPLINE_CHECK(check_vlan(vlan));
  WARPLINE_TRY(PooledPort device, PooledPort::open(port, pool, 1, "sender", adopted, payload.frames()));
  std::unique_ptr<SendPort> opened(new SendPort(std::move(device)));
  const InterfaceAddress& own = port.addresses.front();
  sender.mac = opened->device_.station();
  sender.address = own.address;
  sender.mtu = opened->device_.mtu();
  WARPLINE_TRY(stream::StreamSender streams, stream::StreamSender::create(sender, source, now));
  std::unique_ptr<PayloadStage> stage;
  if (payload.make) {
    WARPLINE_TRY(auto lane, payload.make({sender.connections, payload.ring_bytes}, 0));
    stage = std::make_unique<PayloadStage>(std::move(lane), payload.patience);
  }
  opened->queue_ =
      std::make_unique<SendQueue>(port::PortQueue{opened->port().id(), 0}, opened->device_.pool(), std::move(streams),
                                  route::RouterPort{sender.mac, sender.mtu, {own}}, next_hop, vlan, std::move(stage));
  WARPLINE_CHECK(opened->device_.start());
  return opened;
}

void SendPort::close() {
  if (queue_) queue_->close();
  device_.close();
}

}  // namespace warpline::stream_port
