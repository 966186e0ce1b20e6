// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/runtime/lcore_plan.h"

namespace warpline::memory {

/// Where buffers of one pool can be at the same time.
struct PoolDemand {
  std::uint32_t rx_descriptors = 0;  ///< of all receive queues that are filled from the pool
  std::uint32_t tx_descriptors = 0;  ///< of all transmit queues that its packets may be sent on
  std::uint32_t in_flight = 0;       ///< packets in bursts: batches being filled, burst rings, rings of a ring pair
  std::uint32_t lcores = 1;          ///< that allocate or free, each with a cache
  std::uint32_t cache = 0;           ///< buffers in each cache
};

/// Returns how many buffers never run out under `demand`. Small pools have 2^n - 1, where a mempool's ring wastes
/// nothing; of a large one that could be twice the memory that is needed.
[[nodiscard]] std::uint32_t pool_size(const PoolDemand& demand);

/// Bytes of a buffer, without headroom, that hold a frame of the MTU (with two VLAN tags and FCS) in one segment; at
/// least 2048, and whole KiB, since some devices (ixgbe) use no more of it.
[[nodiscard]] std::uint32_t data_room(std::uint16_t mtu);

/// Returns the memory that a pool takes at most, bookkeeping included, for Eal::start as well: no buffer crosses
/// hugepages of 2 MiB. On ordinary pages, where devices use virtual addresses, buffers follow each other, which takes
/// no more.
[[nodiscard]] Bytes pool_bytes(std::uint32_t size, std::uint32_t data_room);

/// What a pool is to be.
struct PoolShape {
  std::string name{};
  std::uint32_t size = 0;        ///< buffers
  std::uint32_t cache = 0;       ///< buffers each lcore keeps to itself; cut to what fits the size and DPDK
  std::uint32_t data_room = 0;   ///< bytes of a buffer; headroom comes on top
  int node = runtime::kAnyNode;  ///< NUMA node of mbufs and host buffers
};

/// Refuses a size or a data room that no pool has, and on ordinary pages a pool that `obtainable` bytes of memory do
/// not hold: the kernel would end a process that filled it.
[[nodiscard]] Result<void> check_shape(const PoolShape& shape, std::uint64_t obtainable = UINT64_MAX);
/// "pool "port0" of 4095 buffers of 2048 bytes", for errors.
[[nodiscard]] std::string describe(const PoolShape& shape);
/// Why DPDK made no such pool; `code` is of rte_errno.
[[nodiscard]] Error pool_error(const PoolShape& shape, int code);
/// Buffers of each cache, fit for the size and for DPDK.
[[nodiscard]] std::uint32_t fitting_cache(const PoolShape& shape);

}  // namespace warpline::memory
