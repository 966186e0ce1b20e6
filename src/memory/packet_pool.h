// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <rte_mbuf.h>

#include "base/result.h"
#include "base/units.h"

namespace warpline {

/// Where buffers of one pool can be at the same time.
struct PoolDemand {
  std::uint32_t rx_descriptors = 0;  ///< of all receive queues that are filled from the pool
  std::uint32_t tx_descriptors = 0;  ///< of all transmit queues that its packets may be sent on
  std::uint32_t in_flight = 0;       ///< packets in bursts: batches being filled, burst rings, rings of a ring pair
  std::uint32_t lcores = 1;          ///< that allocate or free, each with a cache
  std::uint32_t cache = 0;           ///< buffers in each cache
};

/// Buffers that never run out under `demand`: 2^n - 1, where a mempool's ring wastes nothing.
[[nodiscard]] std::uint32_t pool_size(const PoolDemand& demand);

/// Bytes of a buffer, without headroom, that hold a frame of the MTU (with two VLAN tags and FCS) in one segment; at
/// least 2048.
[[nodiscard]] std::uint32_t data_room(std::uint16_t mtu);

/// Memory that a pool takes of pages of that size, bookkeeping included: for Eal::start. Ordinary pages, the default,
/// take the most.
[[nodiscard]] Bytes pool_bytes(std::uint32_t size, std::uint32_t data_room, Bytes page = {4096});

/// Owns a pool of mbufs in host memory. Nothing of it may be in use when it is destroyed: close the ports first.
class PacketPool {
 public:
  /// `size` buffers of `data_room` bytes (headroom comes on top) on `node` (kAnyNode: anywhere). A cache that is too
  /// large for the size or for DPDK is cut to what fits.
  [[nodiscard]] static Result<PacketPool> make(const std::string& name, std::uint32_t size, std::uint32_t cache,
                                               std::uint32_t data_room, int node);
  PacketPool(PacketPool&& other) noexcept : pool_(other.pool_) { other.pool_ = nullptr; }
  PacketPool& operator=(PacketPool&& other) noexcept;
  ~PacketPool();

  [[nodiscard]] rte_mempool* get() const { return pool_; }
  [[nodiscard]] std::uint32_t size() const { return pool_->size; }
  /// Buffers that are not in the pool or its caches. Exact only while no lcore allocates or frees.
  [[nodiscard]] std::uint32_t in_use() const;

 private:
  explicit PacketPool(rte_mempool* pool) : pool_(pool) {}

  rte_mempool* pool_;
};

}  // namespace warpline
