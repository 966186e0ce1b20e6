// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/memory/pool_settings.h"
#include "warpline/port/port.h"
#include "warpline/stream/receiver_settings.h"
#include "warpline/stream_port/lane_setup.h"
#include "warpline/stream_port/pooled_port.h"
#include "warpline/stream_port/stream_queue.h"

namespace warpline::stream_port {

/// A port that receives streams: the ethdev, its pool and its StreamQueues, each with a receiver of its own, to which
/// the device brings all segments of a connection (RSS). Set-up and clean-up by the control thread; in between each
/// queue belongs to its lcore.
class StreamPort {
 public:
  /// Returns the memory of DPDK that open() takes: for Eal::start. Rings of connections are not of DPDK.
  [[nodiscard]] static Bytes memory(const port::PortSettings& port, const memory::PoolSettings& pool,
                                    std::uint16_t queues = 1, const LaneSetup& lanes = {}) {
    return PooledPort::memory(port, pool, queues, lanes.frames());
  }
  /// Opens `port.spec`, or takes over `adopted`, sets it up and starts it. The first of `port.addresses` is listened on
  /// and answered for; what `receiver` says of MAC address, address and MTU is the port's. `now` is of the clock that
  /// the queues' calls are given. Each queue has as many connections and half-open ones as `receiver` says.
  /// `vlan`: the VLAN of all that comes and goes; 0: frames have no tag. `lanes` makes a lane for each queue, if it
  /// makes any: all of them before the first begins. Errors: usage, for settings that make no sense
  /// or more queues than the device has; environment, for what the machine lacks.
  [[nodiscard]] static Result<std::unique_ptr<StreamPort>> open(const port::PortSettings& port,
                                                                const memory::PoolSettings& pool,
                                                                stream::ReceiverSettings receiver, Nanos now,
                                                                std::optional<std::uint16_t> adopted = {},
                                                                std::uint16_t queues = 1, std::uint16_t vlan = 0,
                                                                const LaneSetup& lanes = {});
  ~StreamPort() { close(); }

  [[nodiscard]] StreamQueue& queue(std::size_t i = 0) { return *queues_[i]; }  ///< the port owns it
  [[nodiscard]] std::size_t queues() const { return queues_.size(); }          ///< of them
  [[nodiscard]] const port::Port& port() const {
    return device_.port();
  }  ///< of DPDK, with its counters; until close()
  [[nodiscard]] rte_mempool* pool() const { return device_.pool(); }  ///< of all frames, received and sent
  /// Stops and closes the device. After the lcore has ended; the queue's counters stay.
  void close();
  /// Returns how many buffers are not back in the pool: 0 after close() unless somebody lost them.
  [[nodiscard]] std::uint32_t leaked() const { return device_.leaked(); }

 private:
  explicit StreamPort(PooledPort device) : device_(std::move(device)) {}

  PooledPort device_;
  std::vector<std::unique_ptr<StreamQueue>> queues_;
};

}  // namespace warpline::stream_port
