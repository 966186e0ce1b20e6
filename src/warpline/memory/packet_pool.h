// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <rte_mbuf.h>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/memory/gpu_memory.h"
#include "warpline/memory/pool_shape.h"

namespace warpline::memory {

/// Owns a pool of mbufs. Nothing of it may be in use when it is destroyed: close the ports first. Its memory is free
/// then, or goes with DPDK, if that is about to end (runtime::Eal::begin_end()).
///
/// Every frame begins on a 64-byte boundary, and so does what follows a split: a split of as many bytes as there are
/// headers (42 for UDP over IPv4) aligns the payload.
class PacketPool {
 public:
  /// Buffers in host memory.
  [[nodiscard]] static Result<PacketPool> make(const PoolShape& shape);
  /// The same, in pages that GPUs reach at the CPU's addresses. The mbufs are direct: all that drivers do faster for
  /// such, they do.
  [[nodiscard]] static Result<PacketPool> make_pinned(const PoolShape& shape, int gpu, const PinMemory& pin);
  /// Buffers in a GPU's memory, external to the mbufs, which are in host memory. Every port that receives into them or
  /// transmits from them has to map() external().
  [[nodiscard]] static Result<PacketPool> make_device(const PoolShape& shape, int gpu, const AllocateMemory& allocate);
  /// In host memory, `size` buffers with caches of `cache`, of `data_room` bytes, on `node`.
  [[nodiscard]] static Result<PacketPool> make(const std::string& name, std::uint32_t size, std::uint32_t cache,
                                               std::uint32_t data_room, int node) {
    return make({name, size, cache, data_room, node});
  }

  PacketPool(PacketPool&& other) noexcept { swap(other); }  ///< owns what the other did, which owns nothing then
  PacketPool& operator=(PacketPool&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PacketPool();

  [[nodiscard]] rte_mempool* get() const { return pool_; }          ///< of DPDK; stays the pool's
  [[nodiscard]] std::uint32_t size() const { return pool_->size; }  ///< buffers in all
  /// Buffers that are not in the pool or its caches. Exact only while no lcore allocates or frees.
  [[nodiscard]] std::uint32_t in_use() const;
  /// A GPU's memory, registered with EAL; empty for a pool in host memory.
  [[nodiscard]] std::span<std::byte> external() const { return external_.bytes; }

 private:
  explicit PacketPool(rte_mempool* pool) : pool_(pool) {}
  [[nodiscard]] static Result<PacketPool> make_in_host(const PoolShape& shape, int gpu, const PinMemory& pin);
  void swap(PacketPool& other) noexcept;

  rte_mempool* pool_ = nullptr;
  std::shared_ptr<void> pin_;  ///< goes before the pool, whose memory it is about
  OwnedMemory external_;       ///< goes after the pool
};

}  // namespace warpline::memory
