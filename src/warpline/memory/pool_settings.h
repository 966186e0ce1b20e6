// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/enum_names.h"

namespace warpline::memory {

/// Where packets or messages are.
enum class MemoryKind : std::uint8_t {
  host,    ///< host memory
  pinned,  ///< host memory that is pinned for GPUs
  device,  ///< the memory of a GPU
};
constexpr auto names_of(MemoryKind) { return enum_names<MemoryKind>({"host", "pinned", "device"}); }

/// Who takes packet buffers from one pool.
enum class PoolSharing : std::uint8_t {
  shared,  ///< all queues of a port
  queue,   ///< one queue
};
constexpr auto names_of(PoolSharing) { return enum_names<PoolSharing>({"shared", "queue"}); }

/// Packet buffers.
struct PoolSettings {
  MemoryKind memory = MemoryKind::host;       ///< not given: pinned for an engine on a GPU
  PoolSharing sharing = PoolSharing::shared;  ///< one pool for all queues of a port, or one each
  std::uint16_t split = 0;      ///< bytes of each frame that go to host memory, the rest to `memory`; 0: all
  std::uint32_t size = 0;       ///< buffers; 0: worked out from rings, bursts in flight and caches
  std::uint32_t cache = 256;    ///< buffers each lcore keeps to itself
  std::uint32_t data_room = 0;  ///< bytes a buffer without headroom; 0: the MTU's frame, at least 2048
  bool operator==(const PoolSettings&) const = default;
};

/// How the buffers of sent packets come back to where packets are received into.
enum class RecycleWay : std::uint8_t {
  off,        ///< each is looked at, and they go to their pool in bulk
  fast_free,  ///< they go there unseen, where all are of one pool and nobody else's
  cache,      ///< each is looked at and goes straight into the lcore's cache of its pool
  direct,     ///< from the transmit ring into the receive ring
  automatic,  ///< direct while that pays, else the best of the others
};
constexpr auto names_of(RecycleWay) { return enum_names<RecycleWay>({"off", "fast-free", "cache", "direct", "auto"}); }

}  // namespace warpline::memory
