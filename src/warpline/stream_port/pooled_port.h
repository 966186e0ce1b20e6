// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "warpline/base/address.h"
#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/memory/packet_pool.h"
#include "warpline/memory/pool_settings.h"
#include "warpline/port/port.h"

namespace warpline::stream_port {

/// Errors: usage, if there is no such VLAN. 0 stands for none.
[[nodiscard]] Result<void> check_vlan(std::uint16_t vlan);

/// Frames that a queue lends to something beside its thread.
struct LentFrames {
  std::uint32_t most = 0;  ///< at a time
  int gpu = -1;            ///< that is to reach them where they are; negative: none
};

/// An ethdev that carries streams, and the pool of all its frames. Set-up and clean-up by the control thread.
class PooledPort {
 public:
  /// Returns the memory of DPDK that open() takes.
  [[nodiscard]] static Bytes memory(const port::PortSettings& port, const memory::PoolSettings& pool,
                                    std::uint16_t queues, const LentFrames& lent);
  /// Opens `port.spec`, or takes over `adopted`, sets it up with so many queue pairs and makes its pool, whose name
  /// begins with `name`; it does not start yet. The pool has buffers for those that each queue lends, where the GPU
  /// reaches. The device checks what checksums it can. Errors: usage, for settings that make no sense or more queues
  /// than the device has; environment, for what the machine lacks.
  [[nodiscard]] static Result<PooledPort> open(const port::PortSettings& port, const memory::PoolSettings& pool,
                                               std::uint16_t queues, std::string_view name,
                                               std::optional<std::uint16_t> adopted, const LentFrames& lent);
  /// Frames come and go from here on. Errors: environment.
  [[nodiscard]] Result<void> start();
  /// Stops and closes the device. After all queues have given their buffers back.
  void close();

  [[nodiscard]] const port::Port& port() const { return *port_; }       ///< of DPDK, with its counters; until close()
  [[nodiscard]] rte_mempool* pool() const { return pool_.get(); }       ///< of all frames, received and sent
  [[nodiscard]] const MacAddress& station() const { return station_; }  ///< the device's MAC address
  [[nodiscard]] std::uint16_t mtu() const { return mtu_; }              ///< in force, in bytes
  /// Returns how many buffers are not back in the pool: 0 after close() unless somebody but the driver lost them.
  [[nodiscard]] std::uint32_t leaked() const { return driver_keeps_ ? 0 : pool_.in_use(); }

 private:
  PooledPort(memory::PacketPool pool, port::Port port, std::uint16_t mtu);

  memory::PacketPool pool_;
  std::optional<port::Port> port_;
  MacAddress station_;
  std::uint16_t mtu_;
  bool driver_keeps_ = false;  ///< buffers, for good
};

}  // namespace warpline::stream_port
