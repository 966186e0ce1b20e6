// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/memory/gpu_memory.h"
#include "warpline/memory/packet_pool.h"
#include "warpline/memory/pool_settings.h"
#include "warpline/port/port.h"
#include "warpline/runtime/lcore_plan.h"

namespace warpline::memory {

/// What the packets that one port receives are to be placed in.
struct PortPoolsPlan {
  std::string name{};           ///< what the pools' names begin with, at most 16 bytes
  PoolSettings settings{};      ///< kind of memory, sharing, split and caches; its size and data room are not read
  std::uint32_t size = 0;       ///< buffers of each pool
  std::uint32_t data_room = 0;  ///< bytes of a buffer without headroom
  std::uint16_t queues = 1;     ///< receive queues
  std::vector<std::uint16_t> gpus{};  ///< that reach the memory; queues take them in turn
  int node = runtime::kAnyNode;       ///< NUMA node of the port
};

/// Returns the host memory that the plan's pools take, bookkeeping included: for Eal::start.
[[nodiscard]] Bytes host_bytes(const PortPoolsPlan& plan);

/// Owns the pools of one port: one for all its queues or one each, and beside each, with a split, one for the frames'
/// first bytes, in host memory that GPUs reach unless the whole plan is for host memory alone.
class PortPools {
 public:
  /// Makes the plan's pools. An error says which memory is not to be had.
  [[nodiscard]] static Result<PortPools> make(const PortPoolsPlan& plan,
                                              const GpuMemory& gpus = GpuMemory::of_machine());

  /// For Port::attach.
  [[nodiscard]] std::span<const port::RxPools> queues() const { return queues_; }
  /// For Port::map of every port that receives into these pools or transmits from them.
  [[nodiscard]] std::vector<std::span<std::byte>> external() const;
  /// Returns the bytes of GPU memory that the packet buffers take.
  [[nodiscard]] Bytes gpu_bytes() const;
  /// Buffers that are not in their pools; exact only while no lcore allocates or frees.
  [[nodiscard]] std::uint32_t in_use() const;
  /// Each pool once, payload before headers.
  [[nodiscard]] std::span<const PacketPool> pools() const { return pools_; }

 private:
  std::vector<PacketPool> pools_;
  std::vector<port::RxPools> queues_;
};

}  // namespace warpline::memory
