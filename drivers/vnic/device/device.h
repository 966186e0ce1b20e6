// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ethdev_driver.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include <rte_ether.h>

#include "vnic/args/devargs.h"
#include "vnic/common/counters.h"
#include "vnic/engine/engine.h"
#include "vnic/engine/iommu.h"
#include "vnic/rings/queue.h"
#include "vnic/wire/egress.h"
#include "vnic/wire/ingress.h"
#include "vnic/wire/packet_buffer.h"

namespace warpline::vnic {

/// Bytes of a frame without FCS beyond its MTU: Ethernet header and two VLAN tags.
inline constexpr std::uint32_t kFrameOverhead = 14 + 2 * 4;
inline constexpr std::uint32_t kMaxMtu = 9000;
inline constexpr std::uint32_t kMaxFrame = kMaxMtu + kFrameOverhead;

/// One port. Lives from probe to close; ethdev's private data holds a pointer to it.
///
/// Threads: set-up by one control thread at a time. Each queue's driver part belongs to the lcore that polls it. The
/// device side of a queue belongs to that same lcore with engine=inline, to the engine's thread with engine=thread.
/// What leaves the port passes `egress` under its lock: one wire, as of a real port.
struct Device {
  Device(std::string port_name, Devargs port_args) : name(std::move(port_name)), args(std::move(port_args)) {}

  std::string name;
  Devargs args;
  std::uint16_t port_id = RTE_MAX_ETHPORTS;
  rte_eth_dev* ethdev = nullptr;

  std::array<RxQueue*, kMaxQueues> rx{};
  std::array<TxQueue*, kMaxQueues> tx{};
  std::uint16_t rx_queues = 0;  ///< configured
  std::uint16_t tx_queues = 0;

  Iommu iommu;                 ///< which memory the device may touch
  Ingress ingress;             ///< frames from the wire: filters, flow rules, RSS, packet buffers
  Egress egress{*this, args};  ///< frames to the wire: faults, rate limit, and whatever is at the other end
  Engine engine{*this};        ///< moves frames between rings and those two

  std::atomic<bool> started{false};
  std::atomic<bool> link_up{false};          ///< started, and not set down by the application
  std::atomic<bool> link_interrupts{false};  ///< the application asked for them
  std::atomic<bool> link_moved{false};       ///< its interrupt was raised
  std::uint32_t link_looks = 0;              ///< link_up_after, those that are left; control thread
  bool link_wanted = true;                   ///< rte_eth_dev_set_link_up and _down

  // The control thread's.
  /// Keeps what a queue has counted when it goes.
  void retire(const Counters& counters) {
    for (unsigned i = 0; i < kCounts; ++i) retired[i] += counters.get(static_cast<Count>(i));
  }
  std::array<std::uint64_t, kCounts> retired{};  ///< of queues that are gone
  std::uint64_t retired_parity = 0;
  std::array<std::uint64_t, kCounts> reset_at{};  ///< what the counters stood at when statistics were reset
  struct Traffic {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
  };
  std::array<Traffic, kMaxQueues> rx_reset_at{};
  std::array<Traffic, kMaxQueues> tx_reset_at{};
};

[[nodiscard]] inline Device& device_of(rte_eth_dev* dev) { return **static_cast<Device**>(dev->data->dev_private); }

}  // namespace warpline::vnic
