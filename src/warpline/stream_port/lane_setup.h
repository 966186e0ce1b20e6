// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "warpline/base/result.h"
#include "warpline/stream/lanes/segment_lane.h"
#include "warpline/stream_port/pooled_port.h"

namespace warpline::stream_port {

/// Who takes the segments of a StreamPort's connections.
struct LaneSetup {
  /// Makes the lane of a queue, of that shape. Unset: the queue's own thread takes them.
  std::function<Result<std::unique_ptr<stream::SegmentLane>>(const stream::LaneShape& shape, std::uint16_t queue)>
      make{};
  std::uint32_t burst = 256;      ///< descriptors that are handed over at a time, at most: 16 to 512
  std::uint32_t slots = 8;        ///< bursts that are in flight, at most: a power of two from 2 on
  int gpu = -1;                   ///< that reads frames where the port receives them; negative: none does
  std::uint32_t queue_slots = 0;  ///< not 0: lanes take frames by themselves, out of queues of so many slots

  /// Returns what a queue may have lent to its lane.
  [[nodiscard]] LentFrames frames() const {
    return {make ? 2 * (queue_slots != 0 ? queue_slots : burst * slots) : 0, gpu};
  }
};

}  // namespace warpline::stream_port
