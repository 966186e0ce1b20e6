// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpline::stream {

/// How large a lane is.
struct LaneShape {
  static constexpr std::uint32_t kMostBurst = 512;

  std::uint32_t connections = 64;      ///< at once
  std::uint32_t burst = 256;           ///< descriptors of a burst at most: up to kMostBurst
  std::uint32_t slots = 4;             ///< bursts in flight, a power of two; with queues orders, and rounds
  std::uint32_t changes = 64;          ///< connections that a burst may add and remove
  std::uint64_t ring_bytes = 4 << 20;  ///< of each connection, a power of two
  std::uint32_t queue_slots = 0;       ///< not 0: it takes frames by itself, out of packet queues of so many slots
};

}  // namespace warpline::stream
