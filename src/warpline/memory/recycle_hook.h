// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "warpline/port/port_queue.h"
#include "warpline/port/vnic.h"

namespace warpline::memory {

/// DPDK's own recycling into one receive queue, rte_eth_recycle_mbufs: of DPDK 23.11 and later, and of the few drivers
/// that have it. The only file that names it includes no headers but DPDK's public ones.
class EthdevRecycling {
 public:
  /// Null where this DPDK or the queue's driver has none. After the queue's set-up.
  [[nodiscard]] static std::shared_ptr<EthdevRecycling> of(port::PortQueue rx);

  virtual ~EthdevRecycling() = default;
  /// Descriptors of a batch: only a transmit queue whose tx_rs_thresh is the same gives any. 0: any batch.
  [[nodiscard]] virtual std::uint16_t requirement() const = 0;
  /// Owner: the lcore that polls both. Both ports are started.
  [[nodiscard]] virtual std::uint16_t move(port::PortQueue rx, port::PortQueue tx) = 0;
};

/// How buffers get into one receive queue.
struct RecycleHook {
  std::shared_ptr<EthdevRecycling> ethdev;  ///< goes first
  decltype(port::VnicCalls::recycle_mbufs) vnic = nullptr;

  [[nodiscard]] bool there() const { return ethdev != nullptr || vnic != nullptr; }
  [[nodiscard]] std::uint16_t move(port::PortQueue rx, port::PortQueue tx) const {
    if (ethdev != nullptr) return ethdev->move(rx, tx);
    return vnic(rx.port, rx.queue, tx.port, tx.queue);
  }
};

}  // namespace warpline::memory
