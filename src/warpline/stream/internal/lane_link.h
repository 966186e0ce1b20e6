// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "warpline/base/frame.h"
#include "warpline/stream/internal/connection_queue.h"
#include "warpline/stream/internal/lane_layout.h"
#include "warpline/stream/lanes/segment_lane.h"

namespace warpline::stream {

/// A receiver's side of its lane: the burst in hand, which is filled; those in flight; and the frames of them all,
/// which are the caller's again when a burst that had them is done. It knows no connections but by their places. Takes
/// all memory when it is made; one thread.
class LaneLink {
 public:
  /// `prompt`: changes leave also while there are no frames.
  LaneLink(std::unique_ptr<SegmentLane> lane, bool prompt);

  [[nodiscard]] SegmentLane& lane() { return *lane_; }
  [[nodiscard]] std::uint8_t* rings() const { return lane_->view().rings; }  ///< as LaneView has them
  [[nodiscard]] const StreamBoard& board() const { return lane_->view().board; }

  /// Returns how many descriptors the burst in hand still takes; 0 until a burst comes back, if all are in flight.
  [[nodiscard]] std::uint32_t room() const;
  /// Adds a frame, for which there is room, to the burst in hand. `token` names it to its owner.
  void add(FrameRef frame, bool checksums_are_right, void* token);
  /// Has the frame of descriptor `i` of the oldest burst taken once more, behind all that were before it.
  void add_again(std::uint32_t i);
  /// Returns the number of the frame that add_again() gets next, from 1.
  [[nodiscard]] std::uint64_t next_again() const { return again_added_ + 1; }
  /// Returns up to which number such frames were in the oldest burst and those before it.
  [[nodiscard]] std::uint64_t again_done() const { return again_done_; }
  /// Returns the sequence of the burst in hand.
  [[nodiscard]] std::uint64_t in_hand() const { return next_; }

  /// The lane is to learn by the next burst how the connection stands, or how far its window reaches.
  void want_change(std::uint32_t connection) { want(connection, kChange, changes_); }
  void want_tell(std::uint32_t connection) { want(connection, kTell, tells_); }
  /// Submits the burst in hand, if it has what is to leave and there is a slot for it. `fill_change(index, change)` and
  /// `fill_tell(index, tell)` write what the lane is to learn; the latter returns false if there is nothing.
  template <typename FillChange, typename FillTell>
  void submit(Nanos now, const FillChange& fill_change, const FillTell& fill_tell) {
    if (count_ == 0 && (!prompt_ || changes_.empty() || !has_slot())) return;
    const BurstSlot slot = slot_of(next_);
    *slot.order = {now, 0, 0};
    while (!changes_.empty()) fill_change(take(changes_, kChange), slot.changes[slot.order->changes++]);
    while (!tells_.empty()) {
      if (fill_tell(take(tells_, kTell), slot.tells[slot.order->tells])) ++slot.order->tells;
    }
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
  /// Returns the sequence of the oldest burst that the lane has not taken; 0 if there is none.
  [[nodiscard]] std::uint64_t waiting() const { return oldest_ == next_ || is_done() ? 0 : oldest_; }
  /// Begins with the oldest burst, which is done.
  [[nodiscard]] DoneBurst begin_oldest();
  /// Ends with it: its slot is free.
  void end_oldest();
  /// Whether descriptor `i` of a burst came with the word that its checksums are right.
  [[nodiscard]] static bool checksums_right(const BurstSlot& slot, std::uint32_t i) {
    return (slot.checksums_right[i / 32] >> i % 32 & 1) != 0;
  }

  /// The frame is its owner's again.
  void give_back(void* token) { returned_[(returned_first_ + returned_count_++) % returned_.size()] = token; }
  /// Moves tokens of frames that are their owner's again to `tokens`. Returns how many.
  [[nodiscard]] std::uint32_t take_back(std::span<void*> tokens);
  /// Stops the lane, as SegmentLane::stop(). Then all frames are their owner's again. Returns how many those are of
  /// which is not known what became of them.
  std::uint64_t stop(Nanos patience);
  /// Returns how many descriptors there are in hand, in flight and to be taken again.
  [[nodiscard]] std::uint64_t held() const { return held_; }

 private:
  static constexpr std::uint8_t kChange = 1;
  static constexpr std::uint8_t kTell = 2;

  /// A descriptor that is taken again.
  struct Again {
    Segment segment;
    void* token;
    bool right;
  };

  [[nodiscard]] BurstSlot slot_of(std::uint64_t sequence) const { return layout_.slot(lane_->view().slots, sequence); }
  [[nodiscard]] std::uint64_t place_of(std::uint64_t sequence) const { return sequence & (shape_.slots - 1); }
  [[nodiscard]] bool has_slot() const { return next_ - oldest_ < shape_.slots; }
  void append(const Segment& segment, bool right, void* token);
  void refill();
  void send();
  void want(std::uint32_t connection, std::uint8_t what, ConnectionQueue& queue) {
    if ((wanted_[connection] & what) != 0) return;
    wanted_[connection] |= what;
    queue.push(connection);
  }
  [[nodiscard]] std::uint32_t take(ConnectionQueue& queue, std::uint8_t what) {
    const std::uint32_t connection = queue.pop();
    wanted_[connection] &= static_cast<std::uint8_t>(~what);
    return connection;
  }

  std::unique_ptr<SegmentLane> lane_;
  LaneShape shape_;
  SlotLayout layout_;
  bool prompt_;
  std::uint64_t next_ = 1;                 ///< sequence of the burst in hand
  std::uint64_t oldest_ = 1;               ///< sequence of the oldest burst in flight; `next_` if there is none
  std::uint32_t count_ = 0;                ///< descriptors in hand
  std::uint64_t held_ = 0;                 ///< descriptors
  std::vector<void*> tokens_;              ///< of each descriptor of each slot
  std::vector<std::uint32_t> counts_;      ///< of each slot: descriptors
  std::vector<std::uint64_t> again_ends_;  ///< of each slot: frames that were taken again in it and before it
  std::vector<Again> again_;               ///< descriptors that wait for a burst, from `again_first_` on
  std::size_t again_first_ = 0;
  std::size_t again_count_ = 0;
  std::uint64_t again_added_ = 0;  ///< frames
  std::uint64_t again_taken_ = 0;  ///< of these, moved into a burst
  std::uint64_t again_done_ = 0;
  std::vector<void*> returned_;
  std::size_t returned_first_ = 0;
  std::size_t returned_count_ = 0;
  std::vector<std::uint8_t> wanted_;  ///< of each connection: in which of the queues it stands
  ConnectionQueue changes_;
  ConnectionQueue tells_;
};

}  // namespace warpline::stream
