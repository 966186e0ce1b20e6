// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/stream/disposition.h"
#include "warpline/stream/internal/lane_layout.h"

namespace warpline::stream {

/// Takes bursts, or rounds of what is in queues, as a lane on a GPU does, one segment after the other, by the CPU: what
/// lanes are compared with, and what receives where there is no GPU. One thread; the lane's memory is the caller's, and
/// of the host.
class HostLane {
 public:
  explicit HostLane(const LaneView& view);

  /// Takes burst `sequence`, of `count` descriptors, which lies in its slot, and writes there what came of it. Neither
  /// waits for the slot's ready word nor stores its done word.
  void take(std::uint64_t sequence, std::uint32_t count);
  /// With queues: takes a round, if there is an order or a frame and a slot for what comes of it. True if so.
  bool take_round();

 private:
  [[nodiscard]] auto key_of() const {
    return [connections = view_.connections](std::uint32_t i) -> const ConnectionKey& { return connections[i].key; };
  }
  [[nodiscard]] KeyPlaces places() const { return {view_.places, view_.place_mask, view_.station.secret}; }
  [[nodiscard]] bool is_for_us(FrameRef frame) const;
  [[nodiscard]] BurstSlot slot_of(std::uint64_t sequence) const {
    return SlotLayout(view_.shape).slot(view_.slots, sequence);
  }
  void begin(std::uint64_t sequence, const BurstSlot& slot);
  void carry_out_orders(const BurstSlot& slot);
  [[nodiscard]] bool carry_out_ready_orders();
  void take_posted(BurstSlot slot, std::uint32_t count);
  void post(const BurstSlot& slot, const LaneConnection& connection, const WrittenReply& reply);
  /// Returns the outcome of the frame whose first descriptor is that one.
  [[nodiscard]] std::uint8_t take_frame(const BurstSlot& slot, std::uint32_t i, bool checksums_are_right);
  [[nodiscard]] Disposition take_bytes(const BurstSlot& slot, LaneConnection& connection, FrameRef frame,
                                       const SegmentReading& reading);
  void write_records(const BurstSlot& slot);

  LaneView view_;
  std::uint32_t sequence_ = 0;
  Nanos now_{};  ///< of the burst or round
  std::uint32_t touched_count_ = 0;
  std::uint32_t touched_[LaneShape::kMostBurst]{};  ///< connections that the burst brought segments of
  // With queues.
  queues::QueueCursor cursor_{};
  std::uint64_t round_ = 1;              ///< its sequence
  std::uint64_t order_ = 1;              ///< sequence of the next one
  const std::uint8_t* marks_ = nullptr;  ///< of the frames in hand
  std::uint8_t outcomes_[LaneShape::kMostBurst]{};
  bool posted_[LaneShape::kMostBurst]{};  ///< of each descriptor: an acknowledgement lies in its frame
};

}  // namespace warpline::stream
