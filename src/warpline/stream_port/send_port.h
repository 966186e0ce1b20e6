// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/memory/pool_settings.h"
#include "warpline/port/port.h"
#include "warpline/stream/payload_source.h"
#include "warpline/stream/sender_settings.h"
#include "warpline/stream_port/payload/payload_setup.h"
#include "warpline/stream_port/pooled_port.h"
#include "warpline/stream_port/send_queue.h"

namespace warpline::stream_port {

/// A port that sends streams: the ethdev, its pool and its SendQueues, each with a sender and a part of the port
/// numbers of its own. Set-up and clean-up by the control thread; in between each queue belongs to its lcore.
class SendPort {
 public:
  /// Returns the memory of DPDK that open() takes: for Eal::start.
  [[nodiscard]] static Bytes memory(const port::PortSettings& port, const memory::PoolSettings& pool,
                                    const PayloadSetup& payload = {}, std::uint16_t queues = 1) {
    return PooledPort::memory(port, pool, queues, payload.frames());
  }
  /// Opens `port.spec`, or takes over `adopted`, sets it up and starts it. The first of `port.addresses` is sent from
  /// and answered for, to a `next_hop` on its link; what `sender` says of MAC address, address and MTU is the port's.
  /// `source` outlives the port, and `now` is of the clock that the queue's calls are given. `vlan`: the VLAN of all
  /// that comes and goes; 0: frames have no tag. With `payload` frames are filled by it, and the source is not asked.
  /// Errors: usage, for settings that make no sense; environment, for what the machine lacks.
  [[nodiscard]] static Result<std::unique_ptr<SendPort>> open(
      const port::PortSettings& port, const memory::PoolSettings& pool, stream::SenderSettings sender,
      const stream::PayloadSource& source, const IpAddress& next_hop, Nanos now,
      std::optional<std::uint16_t> adopted = {}, std::uint16_t vlan = 0, const PayloadSetup& payload = {}) {
    const stream::PayloadSource* const sources[] = {&source};
    return open(port, pool, sender, sources, next_hop, now, adopted, vlan, payload);
  }
  /// The same with a queue for each of `sources`, and `sender.connections` of each queue.
  [[nodiscard]] static Result<std::unique_ptr<SendPort>> open(
      const port::PortSettings& port, const memory::PoolSettings& pool, stream::SenderSettings sender,
      std::span<const stream::PayloadSource* const> sources, const IpAddress& next_hop, Nanos now,
      std::optional<std::uint16_t> adopted = {}, std::uint16_t vlan = 0, const PayloadSetup& payload = {});
  ~SendPort() { close(); }

  [[nodiscard]] std::uint16_t queues() const { return static_cast<std::uint16_t>(queues_.size()); }
  [[nodiscard]] SendQueue& queue(std::size_t i = 0) { return *queues_[i]; }  ///< the port owns it
  [[nodiscard]] const SendQueue& queue(std::size_t i = 0) const { return *queues_[i]; }
  [[nodiscard]] const port::Port& port() const {
    return device_.port();
  }  ///< of DPDK, with its counters; until close()
  [[nodiscard]] rte_mempool* pool() const { return device_.pool(); }  ///< of all frames, received and sent
  /// Stops and closes the device. After the lcores have ended; the queues' counters stay.
  void close();
  /// Returns how many buffers are not back in the pool: 0 after close() unless somebody lost them.
  [[nodiscard]] std::uint32_t leaked() const { return device_.leaked(); }

 private:
  explicit SendPort(PooledPort device) : device_(std::move(device)) {}

  PooledPort device_;
  std::vector<std::unique_ptr<SendQueue>> queues_;
};

}  // namespace warpline::stream_port
