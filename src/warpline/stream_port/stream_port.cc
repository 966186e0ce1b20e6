// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/stream_port.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "warpline/packet/responder.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/stream/known_connections.h"

namespace warpline::stream_port {
namespace {

Result<void> check_listening(const port::PortSettings& port, const memory::PoolSettings& pool) {
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

Result<std::unique_ptr<StreamPort>> StreamPort::open(const port::PortSettings& port, const memory::PoolSettings& pool,
                                                     stream::ReceiverSettings receiver, Nanos now,
                                                     std::optional<std::uint16_t> adopted, std::uint16_t queues,
                                                     std::uint16_t vlan, const LaneSetup& lanes) {
  WARPLINE_CHECK(check_listening(port, pool));
  WARPLINE_CHECK(check_vlan(vlan));
  if (vlan != 0 && lanes.queue_slots != 0) {
    return usage_error("cannot have lanes take frames by themselves in a VLAN", "nobody takes the tag off a frame",
                       "leave the VLAN out, or hand them bursts");
  }
  WARPLINE_TRY(PooledPort device, PooledPort::open(port, pool, queues, "stream", adopted, lanes.frames()));
  std::vector<std::unique_ptr<stream::SegmentLane>> made_lanes(queues);  // go behind those that have begun
  std::unique_ptr<StreamPort> opened(new StreamPort(std::move(device)));
  receiver.mac = opened->device_.station();
  receiver.address = port.addresses.front().address;
  receiver.mtu = opened->device_.mtu();
  if (queues > 1) receiver.known = std::make_shared<stream::KnownConnections>();
  {
    const runtime::SetupStep step("mapping the rings of connections");
    for (std::uint16_t i = 0; lanes.make && i < queues; ++i) {
      WARPLINE_TRY(made_lanes[i],
                   lanes.make(stream::lane_shape(receiver, lanes.burst, lanes.slots, lanes.queue_slots), i));
    }
    for (std::uint16_t i = 0; i < queues; ++i) {
      WARPLINE_TRY(stream::StreamReceiver streams,
                   lanes.make ? stream::StreamReceiver::create(receiver, now, std::move(made_lanes[i]))
                              : stream::StreamReceiver::create(receiver, now));
      opened->queues_.push_back(std::make_unique<StreamQueue>(
          port::PortQueue{opened->port().id(), i}, opened->pool(), std::move(streams),
          packet::Responder(receiver.mac, port.addresses.front(), {.watch = opened->port().watches().data()}), vlan));
    }
  }
  WARPLINE_CHECK(opened->device_.start());
  return opened;
}

void StreamPort::close() {
  for (const auto& queue : queues_) queue->close();
  device_.close();
}

}  // namespace warpline::stream_port
