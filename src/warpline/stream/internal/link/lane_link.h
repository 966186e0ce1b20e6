// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "warpline/base/frame.h"
#include "warpline/stream/internal/connection_queue.h"
#include "warpline/stream/internal/lane_layout.h"
#include "warpline/stream/lanes/segment_lane.h"

namespace warpline::stream {

/// A receiver's side of its lane, whichever way frames go there: what the lane is to learn, and frames that it takes
/// once more or that are the caller's again. It knows no connections but by their places. Takes all memory when it is
/// made; one thread.
class LaneLink {
 public:
  LaneLink(const LaneLink&) = delete;
  LaneLink& operator=(const LaneLink&) = delete;
  virtual ~LaneLink() = default;

  [[nodiscard]] SegmentLane& lane() { return *lane_; }
  [[nodiscard]] std::uint8_t* rings() const { return lane_->view().rings; }  ///< as LaneView has them
  [[nodiscard]] const StreamBoard& board() const { return lane_->view().board; }

  /// Returns how many descriptors it takes now.
  [[nodiscard]] virtual std::uint32_t room() const = 0;
  /// Adds a frame, for which there is room, with marks as kRightMark. `token` names it to its owner.
  virtual void add(FrameRef frame, std::uint8_t marks, void* token) = 0;
  /// Returns what the lane has to take next, a number that moves as it takes something; 0 if there is nothing.
  [[nodiscard]] virtual std::uint64_t waiting() const = 0;
  /// Stops the lane, as SegmentLane::stop(). Then all frames are their owner's again. Returns how many those are of
  /// which is not known what became of them.
  virtual std::uint64_t stop(Nanos patience) = 0;

  /// Returns the number of the frame that is the next to be taken once more, from 1.
  [[nodiscard]] std::uint64_t next_again() const { return again_added_ + 1; }
  /// Returns up to which number it is known what became of such frames.
  [[nodiscard]] std::uint64_t again_done() const { return again_done_; }

  /// The lane is to learn how the connection stands, or how far its window reaches.
  void want_change(std::uint32_t connection) { want(connection, kChange, changes_); }
  void want_tell(std::uint32_t connection) { want(connection, kTell, tells_); }

  /// The frame is its owner's again.
  void give_back(void* token) { returned_[(returned_first_ + returned_count_++) % returned_.size()] = token; }
  /// Moves tokens of frames that are their owner's again to `tokens`. Returns how many.
  [[nodiscard]] std::uint32_t take_back(std::span<void*> tokens) {
    const auto count = static_cast<std::uint32_t>(std::min(tokens.size(), returned_count_));
    for (std::uint32_t i = 0; i < count; ++i) {
      tokens[i] = returned_[returned_first_];
      returned_first_ = (returned_first_ + 1) % returned_.size();
    }
    returned_count_ -= count;
    return count;
  }
  /// Returns how many descriptors there are that the lane has, is to have, or of whose frames is not known what became
  /// of them.
  [[nodiscard]] std::uint64_t held() const { return held_; }

 protected:
  /// A descriptor that is taken again.
  struct Again {
    Segment segment;
    void* token;  ///< of a frame's first; others have none
    std::uint8_t marks;
  };

  explicit LaneLink(std::unique_ptr<SegmentLane> lane)
      : lane_(std::move(lane)),
        shape_(lane_->view().shape),
        layout_(shape_),
        again_(shape_.queue_slots != 0 ? shape_.queue_slots : std::size_t{shape_.slots} * shape_.burst),
        returned_(2 * again_.size()),
        wanted_(shape_.connections),
        changes_(shape_.connections),
        tells_(shape_.connections) {}

  [[nodiscard]] BurstSlot slot_of(std::uint64_t sequence) const { return layout_.slot(lane_->view().slots, sequence); }
  [[nodiscard]] std::uint64_t place_of(std::uint64_t sequence) const { return sequence & (shape_.slots - 1); }
  /// Returns the descriptors that there is place for: whoever does not take frames back gives no more.
  [[nodiscard]] std::uint32_t places() const {
    return static_cast<std::uint32_t>(returned_.size() -
                                      std::min<std::uint64_t>(returned_.size(), held_ + returned_count_));
  }
  [[nodiscard]] bool wants_change() const { return !changes_.empty(); }
  [[nodiscard]] bool wants_tell() const { return !tells_.empty(); }
  /// Writes what the lane is to learn, by `fill_change(index, change)` and `fill_tell(index, tell)`; the latter returns
  /// false if there is nothing.
  template <typename FillChange, typename FillTell>
  void fill_order(const BurstSlot& slot, Nanos now, const FillChange& fill_change, const FillTell& fill_tell) {
    *slot.order = {now, 0, 0};
    while (!changes_.empty()) fill_change(take(changes_, kChange), slot.changes[slot.order->changes++]);
    while (!tells_.empty()) {
      if (fill_tell(take(tells_, kTell), slot.tells[slot.order->tells])) ++slot.order->tells;
    }
  }

  /// The frame of these descriptors waits to be taken once more.
  void push_again(const Segment* first, std::uint8_t marks, void* token) {
    const std::uint32_t pieces = first->more + 1U;
    for (std::uint32_t i = 0; i < pieces; ++i) {
      again_[(again_first_ + again_count_++) % again_.size()] = {first[i], i == 0 ? token : nullptr, marks};
    }
    held_ += pieces;
    ++again_added_;
  }
  [[nodiscard]] bool has_again() const { return again_count_ != 0; }
  /// Returns the first descriptor that waits to be taken once more.
  [[nodiscard]] const Again& next_one_again() const { return again_[again_first_]; }
  [[nodiscard]] Again pop_again() {
    --again_count_;
    return again_[std::exchange(again_first_, (again_first_ + 1) % again_.size())];
  }

  std::unique_ptr<SegmentLane> lane_;
  LaneShape shape_;
  SlotLayout layout_;
  std::uint64_t held_ = 0;        ///< descriptors
  std::uint64_t again_done_ = 0;  ///< frames

 private:
  static constexpr std::uint8_t kChange = 1;
  static constexpr std::uint8_t kTell = 2;

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

  std::vector<Again> again_;  ///< descriptors that wait to be taken once more, from `again_first_` on
  std::size_t again_first_ = 0;
  std::size_t again_count_ = 0;
  std::uint64_t again_added_ = 0;  ///< frames
  std::vector<void*> returned_;
  std::size_t returned_first_ = 0;
  std::size_t returned_count_ = 0;
  std::vector<std::uint8_t> wanted_;  ///< of each connection: in which of the queues it stands
  ConnectionQueue changes_;
  ConnectionQueue tells_;
};

}  // namespace warpline::stream
