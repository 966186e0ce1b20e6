// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "warpline/base/result.h"
#include "warpline/handoff/ring_layout.h"

namespace warpline::handoff {

/// Packets on their way through an engine. Belongs to the producer from acquire() to publish(), to the consumer from
/// completed() to release(), to nobody in between: the engine sees the descriptors alone.
class alignas(kRingLine) Burst {
 public:
  // ---- producer
  /// Whether one more frame of `segments` pieces fits.
  [[nodiscard]] bool has_room(std::uint16_t segments = 1) const {
    return packet_count_ < packet_capacity_ && segments <= segment_capacity_ - segment_count_;
  }
  /// A frame of one piece. Needs has_room(1). An engine works on frames preset to `forward` and leaves others alone.
  void append(void* packet, std::uint8_t* data, std::uint32_t length, Verdict preset = Verdict::forward) {
    assert(has_room(1));
    packets_[packet_count_++] = packet;
    segments_[segment_count_++] = {data, length, 0, preset};
    preset_count_ = static_cast<std::uint16_t>(preset_count_ + (preset != Verdict::forward));
  }
  /// A frame of several pieces, at least one. Needs has_room(segments). The caller fills `data` and `length` of the
  /// returned descriptors, the rest is set.
  [[nodiscard]] Segment* append(void* packet, std::uint16_t segments, Verdict preset = Verdict::forward) {
    assert(segments > 0 && has_room(segments));
    packets_[packet_count_++] = packet;
    Segment* const first = segments_ + segment_count_;
    for (std::uint16_t i = 0; i < segments; ++i) {
      first[i].more = static_cast<std::uint16_t>(segments - 1 - i);
      first[i].verdict = preset;
    }
    segment_count_ = static_cast<std::uint16_t>(segment_count_ + segments);
    preset_count_ = static_cast<std::uint16_t>(preset_count_ + (preset != Verdict::forward));
    return first;
  }
  /// The same of frames of one piece each.
  [[nodiscard]] bool has_room_for(std::uint16_t frames) const {
    return frames <= packet_capacity_ - packet_count_ && frames <= segment_capacity_ - segment_count_;
  }
  /// Where the packets of the next append_run() are put.
  [[nodiscard]] void** tail() { return packets_ + packet_count_; }
  /// Up to `count` frames of one piece from tail(). Needs room for all of them. f(void* packet, Segment& segment) fills
  /// `data` and `length` in, or returns false to end the run before that packet. Returns how many it took.
  template <typename F>
  std::uint16_t append_run(std::uint16_t count, F&& f) {
    assert(count == 0 || has_room_for(count));
    void* const* const packets = tail();
    Segment* const segments = segments_ + segment_count_;
    std::uint16_t taken = 0;
    for (; taken < count; ++taken) {
      Segment segment{nullptr, 0, 0, Verdict::forward};
      if (!f(packets[taken], segment)) break;
      segments[taken] = segment;
    }
    packet_count_ = static_cast<std::uint16_t>(packet_count_ + taken);
    segment_count_ = static_cast<std::uint16_t>(segment_count_ + taken);
    return taken;
  }
  /// The same of frames of two pieces each. f(void* packet, Segment& first, Segment& second).
  template <typename F>
  std::uint16_t append_pairs(std::uint16_t count, F&& f) {
    assert(count == 0 || (has_room_for(count) && 2 * count <= segment_capacity_ - segment_count_));
    void* const* const packets = tail();
    Segment* const segments = segments_ + segment_count_;
    std::uint16_t taken = 0;
    for (; taken < count; ++taken) {
      Segment first{nullptr, 0, 1, Verdict::forward};
      Segment second{nullptr, 0, 0, Verdict::forward};
      if (!f(packets[taken], first, second)) break;
      segments[2 * taken] = first;
      segments[2 * taken + 1] = second;
    }
    packet_count_ = static_cast<std::uint16_t>(packet_count_ + taken);
    segment_count_ = static_cast<std::uint16_t>(segment_count_ + 2 * taken);
    return taken;
  }
  /// Travel from producer to consumer; what they mean is theirs to say.
  void set_stamp(std::uint64_t stamp) { stamp_ = stamp; }
  void set_waited(std::uint64_t ticks) { waited_ = ticks; }
  void add_bytes(std::uint64_t bytes) { bytes_ += bytes; }

  // ---- producer and consumer
  [[nodiscard]] bool empty() const { return packet_count_ == 0; }
  [[nodiscard]] std::uint16_t packet_count() const { return packet_count_; }
  [[nodiscard]] std::uint16_t segment_count() const { return segment_count_; }
  [[nodiscard]] std::uint64_t stamp() const { return stamp_; }
  [[nodiscard]] std::uint64_t waited() const { return waited_; }
  [[nodiscard]] bool traced() const { return traced_; }  ///< as published
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// The opaque pointers given to append(), in that order.
  [[nodiscard]] std::span<void* const> packets() const { return {packets_, packet_count_}; }

  // ---- consumer
  /// Frames whose verdict is not `forward`. 0 spares reading the descriptors: all of packets() is to be forwarded.
  [[nodiscard]] std::uint16_t exceptions() const { return exceptions_; }
  /// Frames preset to `forward`: the engine's to work on.
  [[nodiscard]] std::uint16_t for_work() const { return static_cast<std::uint16_t>(packet_count_ - preset_count_); }
  /// By how many the engine's own count of the frames that it worked on differs from for_work(): 0, or the engine
  /// passed over a frame or did one twice. Exact for each burst, and free: the count comes in the done word.
  [[nodiscard]] std::uint16_t unworked() const {
    const int missing = for_work() - worked_;
    return static_cast<std::uint16_t>(missing < 0 ? -missing : missing);
  }
  /// f(void* packet, Verdict verdict) or f(void* packet, Verdict verdict, std::uint32_t bytes) for each packet in the
  /// order of append().
  template <typename F>
  void for_each(F&& f) const {
    const Segment* first = segments_;
    for (std::uint16_t i = 0; i < packet_count_; ++i) {
      const Verdict verdict = first->verdict;
      std::uint32_t bytes = 0;
      for (std::uint16_t pieces = first->more + 1; pieces != 0; --pieces) bytes += (first++)->length;
      if constexpr (std::is_invocable_v<F, void*, Verdict, std::uint32_t>) {
        f(packets_[i], verdict, bytes);
      } else {
        f(packets_[i], verdict);
      }
    }
  }

 private:
  friend class BurstRing;

  Segment* segments_ = nullptr;
  void** packets_ = nullptr;
  std::uint64_t stamp_ = 0;
  std::uint64_t waited_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint16_t segment_capacity_ = 0;
  std::uint16_t packet_capacity_ = 0;
  std::uint16_t segment_count_ = 0;
  std::uint16_t packet_count_ = 0;
  std::uint16_t preset_count_ = 0;  ///< packets appended with another verdict than `forward`
  std::uint16_t exceptions_ = 0;
  std::uint16_t worked_ = 0;
  bool traced_ = false;
};

struct BurstRingShape {
  std::uint32_t slots;     ///< bursts in flight, a power of two
  std::uint16_t packets;   ///< a burst at most
  std::uint16_t segments;  ///< descriptors a burst at most, at least `packets`
  std::uint64_t first_sequence = 1;
};

/// Hands bursts from one producer to the lanes of an engine and, in the order of publishing, on to one consumer.
/// Lock-free, allocates at set-up only. A burst of one packet is handed on like any other: nothing waits to fill up.
///
/// An engine that fails may still write to what it sees of the ring. renew() leaves that to it: from the producer's
/// next burst on the ring has words and descriptors of its own again, for another engine.
class BurstRing {
 public:
  /// A usage error when the shape cannot be.
  [[nodiscard]] static Result<std::unique_ptr<BurstRing>> create(const BurstRingShape& shape);

  BurstRing(const BurstRing&) = delete;
  BurstRing& operator=(const BurstRing&) = delete;

  // ---- producer's thread
  /// The burst being filled: the same one until it is published. Null when all slots are in flight.
  /// Acquire: pairs with release(), after which the slot is the producer's again.
  [[nodiscard]] Burst* acquire() {
    if (open_ != nullptr) return open_;
    if (renewed_.load(std::memory_order_acquire) != nullptr) [[unlikely]]
      move_to_renewed();
    if (next_ - seen_released_ >= slots_) {
      seen_released_ = released_.load(std::memory_order_acquire);
      if (next_ - seen_released_ >= slots_) return nullptr;
    }
    open_ = &burst(next_);
    open_->segments_ = filling_->segments + (next_ & view_.slot_mask) * view_.segments_per_slot;
    open_->segment_count_ = 0;
    open_->packet_count_ = 0;
    open_->preset_count_ = 0;
    open_->bytes_ = 0;
    return open_;
  }
  /// Returns the sequence of the burst of acquire(), and its slot.
  [[nodiscard]] std::uint64_t next_sequence() const { return next_; }
  [[nodiscard]] std::uint64_t next_slot() const { return next_ & view_.slot_mask; }
  /// Hands the burst of acquire(), not empty, to the engine. Release: everything written before is visible to the lane
  /// that takes it, and through the lane to the consumer. `traced`: the engine is to say when it works on it.
  void publish(bool traced = false) {
    assert(open_ != nullptr && !open_->empty());
    open_->traced_ = traced;
    filling_->ready[next_ & view_.slot_mask].timed = traced ? 1 : 0;
    std::atomic_ref(filling_->ready[next_ & view_.slot_mask].value)
        .store(pack_ring_word(next_, open_->segment_count_), std::memory_order_release);
    ++next_;
    published_.store(next_, std::memory_order_release);
    open_ = nullptr;
  }

  // ---- consumer's thread
  /// The oldest burst not yet released, if the engine is done with it; else null.
  /// Acquire: verdicts and packet bytes that the engine wrote are visible.
  [[nodiscard]] const Burst* completed() {
    const std::uint64_t word =
        std::atomic_ref(view_of(oldest_).done[oldest_ & view_.slot_mask].value).load(std::memory_order_acquire);
    if (!has_sequence(word, oldest_)) return nullptr;
    Burst& done = burst(oldest_);
    done.exceptions_ = count_of(word);
    done.worked_ = worked_of(word);
    return &done;
  }
  /// When the engine worked on a burst, in ticks of the time-stamp counter; 0: it does not say.
  struct EngineTimes {
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
  };
  /// Returns it for the burst of completed(), which was published as one that is traced.
  [[nodiscard]] EngineTimes engine_times() const {
    const RingWord& done = view_of(oldest_).done[oldest_ & view_.slot_mask];
    return {done.begun, done.ended};
  }
  /// Gives the slot of the burst of completed() or reclaim() back to the producer. Release: pairs with acquire().
  void release() {
    ++oldest_;
    released_.store(oldest_, std::memory_order_release);
  }
  /// Only after the engine has stopped: the oldest burst not yet released, done or not; null when there is none left.
  /// Frames that the engine never worked on get the verdict `engine_stopped`, so nothing of it is for_work(). Like
  /// completed(), ends with release().
  [[nodiscard]] const Burst* reclaim();

  // ---- any thread
  /// Bursts published so far, and those of them not yet released. Recent, not exact, while the others run.
  [[nodiscard]] std::uint64_t published() const {
    return published_.load(std::memory_order_acquire) - view_.first_sequence;
  }
  [[nodiscard]] std::uint64_t in_flight() const {
    const std::uint64_t released = released_.load(std::memory_order_acquire);
    return published_.load(std::memory_order_acquire) - released;
  }
  /// Bursts published and not yet done, of those not yet released.
  [[nodiscard]] std::uint64_t undone() const {
    std::uint64_t count = 0;
    const std::uint64_t end = published_.load(std::memory_order_acquire);
    for (std::uint64_t i = released_.load(std::memory_order_acquire); i != end; ++i) count += !view_of(i).is_done(i);
    return count;
  }
  /// Whether the engine is done with the burst that was published after `earlier` others; one of the last slots().
  [[nodiscard]] bool is_done(std::uint64_t earlier) const {
    const std::uint64_t sequence = view_.first_sequence + earlier;
    return view_of(sequence).is_done(sequence);
  }
  [[nodiscard]] std::uint32_t slots() const { return slots_; }
  /// Returns the view of the ring for the engine that it was made for.
  [[nodiscard]] const EngineView& engine_view() const { return view_; }
  /// Makes and returns the view for a replacement engine, with the same stop word. Call it once.
  [[nodiscard]] const EngineView& renew();
  /// The first sequence that is the other engine's; UINT64_MAX until the producer has got to it.
  [[nodiscard]] std::uint64_t renewed_from() const { return renewed_from_.load(std::memory_order_acquire); }
  /// All that an engine sees, whole pages: what to register with a device.
  [[nodiscard]] std::span<std::byte> engine_region() const { return {region_.get(), region_size_}; }

 private:
  struct FreeRegion {
    void operator()(std::byte* region) const;
  };

  explicit BurstRing(const BurstRingShape& shape);
  using Region = std::unique_ptr<std::byte[], FreeRegion>;

  [[nodiscard]] Region make_region() const;
  /// The words and descriptors in a region, each slot as if the burst of `sequence` less the slots had passed.
  [[nodiscard]] EngineView view_in(const Region& region, std::uint64_t sequence) const;
  [[nodiscard]] Burst& burst(std::uint64_t sequence) { return bursts_[sequence & view_.slot_mask]; }
  [[nodiscard]] const EngineView& view_of(std::uint64_t sequence) const {
    return sequence < renewed_from() ? view_ : renewed_view_;
  }
  void move_to_renewed();

  // Set once.
  std::uint32_t slots_;
  std::uint16_t segments_per_slot_;
  std::uint64_t first_sequence_;
  std::size_t region_size_;
  Region region_;
  std::unique_ptr<Burst[]> bursts_;
  std::unique_ptr<void*[]> packets_;
  EngineView view_;

  // Set by renew(): its caller writes them, then publishes them through renewed_.
  Region renewed_region_;
  EngineView renewed_view_{};
  std::atomic<const EngineView*> renewed_{nullptr};
  std::atomic<std::uint64_t> renewed_from_{UINT64_MAX};  ///< written by the producer

  // The producer's line.
  alignas(kRingLine) std::uint64_t next_;
  std::uint64_t seen_released_;
  Burst* open_ = nullptr;
  const EngineView* filling_ = &view_;
  std::atomic<std::uint64_t> published_;  ///< a copy of next_ for others

  // The consumer's line.
  alignas(kRingLine) std::uint64_t oldest_;
  std::atomic<std::uint64_t> released_;  ///< a copy of oldest_ for others
};

}  // namespace warpline::handoff
