// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

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

/// A port that sends streams: the ethdev, its pool and one SendQueue. Set-up and clean-up by the control thread; the
/// queue belongs to its lcore in between.
class SendPort {
 public:
  /// Returns the memory of DPDK that open() takes: for Eal::start.
  [[nodiscard]] static Bytes memory(const port::PortSettings& port, const memory::PoolSettings& pool,
                                    const PayloadSetup& payload = {}) {
    return PooledPort::memory(port, pool, 1, payload.frames());
  }
  /// Opens `port.spec`, or takes over `adopted`, sets it up and starts it. The first of `port.addresses` is sent from
  /// and answered for, to a `next_hop` on its link; what `sender` says of MAC address, address and MTU is the port's.
  /// `source` outlives the port, and `now` is of the clock that the queue's calls are given. `vlan`: the VLAN of all
  /// that comes and goes; 0: frames have no tag. With `payload` frames are filled by it, and the source is not asked.
  /// Errors: usage, for settings that make no sense; environment, for what the machine lacks.
  [[nodiscard]] static Result<std::unique_ptr<SendPort>> open(
      const port::PortSettings& port, const memory::PoolSettings& pool, stream::SenderSettings sender,
      const stream::PayloadSource& source, const IpAddress& next_hop, Nanos now,
      std::optional<std::uint16_t> adopted = {}, std::uint16_t vlan = 0, const PayloadSetup& payload = {});
  ~SendPort() { close(); }

  [[nodiscard]] SendQueue& queue() { return *queue_; }  ///< the port owns it
  [[nodiscard]] const port::Port& port() const {
    return device_.port();
  }  ///< of DPDK, with its counters; until close()
  /// Stops and closes the device. After the lcore has ended; the queue's counters stay.
  void close();
  /// Returns how many buffers are not back in the pool: 0 after close() unless somebody lost them.
  [[nodiscard]] std::uint32_t leaked() const { return device_.leaked(); }

 private:
  explicit SendPort(PooledPort device) : device_(std::move(device)) {}

  PooledPort device_;
  std::unique_ptr<SendQueue> queue_;
};

}  // namespace warpline::stream_port
