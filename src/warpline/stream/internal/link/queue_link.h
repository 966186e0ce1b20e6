// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "warpline/base/device/shared_words.h"
#include "warpline/base/frame.h"
#include "warpline/stream/internal/link/lane_link.h"
#include "warpline/stream/stream_receiver.h"

namespace warpline::stream {

/// The link to a lane that takes frames out of packet queues: their proxy, which looks at no frame. Orders go beside
/// the frames, in slots of their own, and what came of rounds comes back in others.
class QueueLink final : public LaneLink {
 public:
  explicit QueueLink(std::unique_ptr<SegmentLane> lane);

  /// Returns how many slots are free; 0 while frames wait to be taken once more.
  [[nodiscard]] std::uint32_t room() const override {
    if (has_again()) return 0;
    return std::min(queues_->room(shape_.queue_slots, shape_.queue_slots), places());
  }
  /// The lane sees it behind the next submit().
  void add(FrameRef frame, std::uint8_t marks, void* token) override {
    queues_->post(token, {frame.segments, frame.count}, Verdict::forward, marks);
    held_ += frame.count;
  }
  /// Has a frame that was released taken once more, behind all that are posted.
  void add_again(const queues::PacketQueues::Released& frame) {
    push_again(first_of(frame), static_cast<std::uint8_t>(marks_of(frame) | kAgainMark), frame.packet);
  }
  [[nodiscard]] FrameRef frame_of(const queues::PacketQueues::Released& frame) const {
    return frame_at(first_of(frame));
  }
  [[nodiscard]] std::uint8_t marks_of(const queues::PacketQueues::Released& frame) const {
    return queues_->view().receive.marks[frame.sequence & queues_->view().receive.slot_mask];
  }

  /// Orders what the lane is to learn, written as LaneLink::fill_order() says, and then lets it see what was added: not
  /// before there is a slot for the order.
  template <typename FillChange, typename FillTell>
  void submit(Nanos now, const FillChange& fill_change, const FillTell& fill_tell) {
    store_release(&lane_->view().now->value, static_cast<std::uint64_t>(now.value));
    if (wants_change() || wants_tell()) {
      if (order_ - carried_out_ == shape_.slots) return;
      const BurstSlot slot = slot_of(order_);
      fill_order(slot, now, fill_change, fill_tell);
      if (slot.order->changes != 0 || slot.order->tells != 0) send_order();
    }
    publish(now);
  }

  /// What came of a round.
  struct Round {
    const BurstResult* result;
    const ConnectionRecord* records;
  };
  /// Whether there is one that was not taken in.
  [[nodiscard]] bool has_round() const {
    return load_acquire(&lane_->view().done[place_of(round_)].value) == round_ << 32;
  }
  /// Begins with the oldest one, and calls carried_out(const ConnectionChange&) for each change that was ordered for
  /// it.
  template <typename CarriedOut>
  [[nodiscard]] Round begin_round(const CarriedOut& carried_out) {
    const BurstSlot slot = slot_of(round_);
    for (; carried_out_ != slot.result->orders && carried_out_ != order_; ++carried_out_) {
      const BurstSlot order = slot_of(carried_out_);
      for (std::uint32_t i = 0; i < order.order->changes; ++i) carried_out(order.changes[i]);
    }
    return {slot.result, slot.records};
  }
  /// Ends with it: its slot is the lane's.
  void end_round() { store_release(&lane_->view().taken->value, ++round_); }

  /// Takes back the frames that the lane is done with: f(const Released&), whose `worked` is the outcome and 1.
  template <typename F>
  std::uint32_t take_released(const F& f) {
    return queues_->take_released(shape_.queue_slots, [&](const queues::PacketQueues::Released& frame) {
      held_ -= first_of(frame)->more + 1U;
      if ((marks_of(frame) & kAgainMark) != 0) ++again_done_;
      f(frame);
    });
  }
  /// Takes frames that the lane has posted to be sent. Returns how many.
  [[nodiscard]] std::uint32_t take_posted(std::span<PostedFrame> frames);

  [[nodiscard]] std::uint64_t waiting() const override;
  std::uint64_t stop(Nanos patience) override;

 private:
  static constexpr std::uint8_t kAgainMark = 0x80;  ///< of a frame: it is taken once more

  [[nodiscard]] Segment* first_of(const queues::PacketQueues::Released& frame) const {
    return queues_->view().receive.at(frame.sequence);
  }
  void send_order();
  void publish(Nanos now);
  void begin();

  queues::PacketQueues* queues_;
  bool begun_ = false;
  std::uint64_t order_ = 1;        ///< sequence of the next one
  std::uint64_t carried_out_ = 1;  ///< orders before this sequence
  std::uint64_t round_ = 1;        ///< sequence of the oldest one that was not taken in
};

}  // namespace warpline::stream
