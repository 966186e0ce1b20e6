// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "warpline/base/frame.h"
#include "warpline/stream/internal/link/lane_link.h"

namespace warpline::stream {

/// The link to a lane that is handed bursts: the burst in hand, which is filled; those in flight; and the frames of
/// them all, which are the caller's again when a burst that had them is done.
class BurstLink final : public LaneLink {
 public:
  /// `prompt`: changes leave also while there are no frames.
  BurstLink(std::unique_ptr<SegmentLane> lane, bool prompt);

  /// Returns how many descriptors the burst in hand still takes; 0 until a burst comes back, if all are in flight.
  [[nodiscard]] std::uint32_t room() const override;
  void add(FrameRef frame, std::uint8_t marks, void* token) override;
  /// Has the frame of descriptor `i` of the oldest burst taken once more, behind all that were before it.
  void add_again(std::uint32_t i);
  /// Returns the sequence of the burst in hand.
  [[nodiscard]] std::uint64_t in_hand() const { return next_; }

  /// Submits the burst in hand, if it has what is to leave and there is a slot for it. What the lane is to learn is
  /// written as LaneLink::fill_order() says.
  template <typename FillChange, typename FillTell>
  void submit(Nanos now, const FillChange& fill_change, const FillTell& fill_tell) {
    if (count_ == 0 && (!prompt_ || !wants_change() || !has_slot())) return;
    fill_order(slot_of(next_), now, fill_change, fill_tell);
    send();
  }

  /// The oldest burst, once it is done.
  struct DoneBurst {
    std::uint64_t sequence;
    BurstSlot slot;
    std::uint32_t count;            ///< of descriptors
    std::span<void* const> tokens;  ///< of the descriptors that begin a frame
  };
  /// Whether the oldest burst is done.
  [[nodiscard]] bool is_done() const;
  [[nodiscard]] std::uint64_t waiting() const override { return oldest_ == next_ || is_done() ? 0 : oldest_; }
  /// Begins with the oldest burst, which is done.
  [[nodiscard]] DoneBurst begin_oldest();
  /// Ends with it: its slot is free.
  void end_oldest();
  /// Whether descriptor `i` of a burst came with the word that its checksums are right.
  [[nodiscard]] static bool checksums_right(const BurstSlot& slot, std::uint32_t i) {
    return (slot.checksums_right[i / 32] >> i % 32 & 1) != 0;
  }

  std::uint64_t stop(Nanos patience) override;

 private:
  [[nodiscard]] bool has_slot() const { return next_ - oldest_ < shape_.slots; }
  void append(const Segment& segment, bool right, void* token);
  void refill();
  void send();

  bool prompt_;
  std::uint64_t next_ = 1;                 ///< sequence of the burst in hand
  std::uint64_t oldest_ = 1;               ///< sequence of the oldest burst in flight; `next_` if there is none
  std::uint32_t count_ = 0;                ///< descriptors in hand
  std::vector<void*> tokens_;              ///< of each descriptor of each slot
  std::vector<std::uint32_t> counts_;      ///< of each slot: descriptors
  std::vector<std::uint64_t> again_ends_;  ///< of each slot: frames that were taken again in it and before it
  std::uint64_t again_taken_ = 0;          ///< frames that were moved into a burst once more
};

}  // namespace warpline::stream
