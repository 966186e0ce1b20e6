// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/queues/packet_queues.h"
#include "warpline/stream/lanes/lane_shape.h"
#include "warpline/stream/receiver_settings.h"

namespace warpline::stream {

struct LaneStation;
struct LaneView;

/// A lane takes the segments of a StreamReceiver's connections into rings of its own: a burst at a time, in their
/// order, beside the receiver's thread. It may be a thread of the host or a CTA of a GPU. What is said in memory that
/// both reach is in internal/lane_layout.h. The receiver owns it and makes all calls, on its thread.
class SegmentLane {
 public:
  SegmentLane() = default;
  SegmentLane(const SegmentLane&) = delete;
  SegmentLane& operator=(const SegmentLane&) = delete;
  virtual ~SegmentLane() = default;

  /// Returns its memory, the same for as long as it lives. Its rings need not be where the CPU reaches.
  [[nodiscard]] virtual const LaneView& view() const = 0;
  /// Returns its queues, if its shape has some: the receiver is their proxy. Null: it is handed bursts.
  [[nodiscard]] virtual queues::PacketQueues* queues() = 0;
  /// Returns what keeps its rings mapped, also when the lane is gone.
  [[nodiscard]] virtual std::shared_ptr<const void> ring_memory() const = 0;
  /// Begins to take bursts, from the first on, of frames for that station. Once. Errors: environment, if there is no
  /// thread or kernel to be had.
  [[nodiscard]] virtual Result<void> start(const LaneStation& station) = 0;
  /// Sees to it that the burst is taken, whose ready word has been stored. Does not wait. With queues it is called
  /// once, with 1, before anything is posted.
  virtual void submit(std::uint64_t sequence) = 0;
  /// Returns why no burst is taken any more, if so.
  [[nodiscard]] virtual std::optional<Error> failure() = 0;
  /// Ends behind the bursts that are ready: frames and rings are touched no more then. Waits for that, as long as
  /// `patience` for what may hang; false if it is given up, with all that it works with.
  virtual bool stop(Nanos patience) = 0;
};

/// Returns the shape of a lane for a receiver with these settings: bursts of up to `burst` descriptors, `slots` of them
/// at once, a power of two; `queue_slots` as LaneShape has it.
[[nodiscard]] constexpr LaneShape lane_shape(const ReceiverSettings& settings, std::uint32_t burst = 256,
                                             std::uint32_t slots = 8, std::uint32_t queue_slots = 0) {
  return {.connections = settings.connections,
          .burst = burst,
          .slots = slots,
          .changes = settings.connections,
          .ring_bytes = settings.ring_bytes,
          .queue_slots = queue_slots};
}

}  // namespace warpline::stream
