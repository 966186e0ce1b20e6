// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "warpline/base/result.h"
#include "warpline/queues/queue_layout.h"

namespace warpline::queues {

/// `QueueShape` is how large a queue pair is.
struct QueueShape {
  std::uint32_t slots = 1024;  ///< of either queue, a power of two, at least kMaxSegments
  std::uint64_t first_sequence = 1;
};

/// `PacketQueues` is a queue pair and its proxy on the CPU. One thread posts packets that were received, another one
/// (or the same) sends what the consumer posted and takes slots back. Allocates at set-up only. A slot is the poster's
/// again when the consumer has released it and, released as `forward`, its packet was taken to be sent: whatever the
/// consumer writes, no packet is sent twice and none is forgotten.
class PacketQueues {
 public:
  /// A usage error when the shape cannot be.
  [[nodiscard]] static Result<std::unique_ptr<PacketQueues>> create(const QueueShape& shape);

  PacketQueues(const PacketQueues&) = delete;
  PacketQueues& operator=(const PacketQueues&) = delete;

  // ---- poster's thread
  /// Returns how many slots are free where `most` may be in use; what came back since an earlier call is looked for
  /// only if it would be fewer than `wanted`. Acquire: pairs with the sender's freeing of them.
  [[nodiscard]] std::uint32_t room(std::uint32_t wanted, std::uint32_t most) {
    if (next_ - seen_freed_ + wanted > most) seen_freed_ = freed_.load(std::memory_order_acquire);
    const std::uint64_t used = next_ - seen_freed_;
    return used < most ? static_cast<std::uint32_t>(most - used) : 0;
  }
  /// Puts a frame into as many slots as it has pieces, at least one, for which slots are free. `preset` other than
  /// `forward`: the consumer is to leave it alone and release it so. The consumer sees it after publish().
  /// `mark` is as ReceiveQueueView has it.
  void post(void* packet, std::span<const Segment> pieces, Verdict preset = Verdict::forward, std::uint8_t mark = 0);
  /// Lets the consumer see all that was posted. Release: with it, everything written before. `stamp` goes with the
  /// first of these packets to take_released().
  void publish(std::uint64_t stamp);

  // ---- sender's thread
  /// Takes packets that the consumer has posted, in its order, to packets[0 .. most), and to `lengths`, if there is
  /// one, how many bytes of each are to be sent, as TransmitDescriptor has it. Returns how many: until complete() the
  /// descriptors are not the consumer's. Acquire: pairs with TransmitQueueView::ring().
  std::uint32_t take_sent(void** packets, std::uint32_t most, std::uint32_t* lengths = nullptr);
  /// What take_sent() returned was sent: its descriptors are free.
  void complete() { store_release(view_.transmit.completed, sent_); }
  /// A frame that the consumer is done with.
  struct Released {
    void* packet;            ///< if it is to be dropped; null if it was sent
    Verdict verdict;         ///< of the consumer
    std::uint16_t worked;    ///< as ReceiveQueueView::release() had it
    std::uint64_t stamp;     ///< 0 but for the first packet of each publish()
    std::uint64_t sequence;  ///< of its first slot, whose descriptors are as they were during the call
  };
  /// Takes the slots back that the consumer is done with, in their order, `most` frames at most: f(const Released&) for
  /// each frame. Returns how many frames.
  template <typename F>
  std::uint32_t take_released(std::uint32_t most, F&& f) {
    std::uint32_t frames = 0;
    for (const std::uint64_t end = published_.load(std::memory_order_acquire); oldest_ != end && frames < most;) {
      Entry& entry = entry_of(oldest_);
      const std::uint64_t word = load_acquire(view_.receive.released + (oldest_ & view_.receive.slot_mask));
      if (!has_sequence(word, oldest_)) break;
      const auto verdict = static_cast<Verdict>(count_of(word));
      if (verdict == Verdict::forward && entry.packet != nullptr) break;  // the doorbell is still to be rung
      if (entry.for_work) {
        ++checked_;
        unworked_ += worked_of(word) == 0;
      }
      end_frame(entry, verdict, worked_of(word), f);
      ++frames;
    }
    if (frames != 0) freed_.store(oldest_, std::memory_order_release);
    return frames;
  }
  /// Only after the consumer has ended: takes the oldest frames back, whatever became of them, as take_released().
  /// Those that it never released or sent are `engine_stopped`.
  template <typename F>
  void reclaim(F&& f) {
    for (const std::uint64_t end = published_.load(std::memory_order_acquire); oldest_ != end;) {
      if (take_released(1, f) == 0) end_frame(entry_of(oldest_), Verdict::engine_stopped, 0, f);
    }
    freed_.store(oldest_, std::memory_order_release);
  }
  /// Frames for work that were released since the last call, and those of them that the consumer did not work on,
  /// together with descriptors for the transmit queue that named no frame that was in hand.
  struct Checked {
    std::uint64_t frames;
    std::uint64_t bad;
  };
  [[nodiscard]] Checked take_checked() {
    const Checked checked{checked_, unworked_};
    checked_ = unworked_ = 0;
    return checked;
  }

  // ---- any thread
  /// Slots that were posted and are not free. Recent, not exact, while the others run.
  [[nodiscard]] std::uint64_t in_flight() const {
    const std::uint64_t freed = freed_.load(std::memory_order_acquire);
    return published_.load(std::memory_order_acquire) - freed;
  }
  /// Whether the consumer has something to do, and the sequence of the slot that it has not released.
  struct Waiting {
    bool any;
    std::uint64_t sequence;
  };
  [[nodiscard]] Waiting waiting() const;
  [[nodiscard]] std::uint32_t slots() const { return slots_; }
  [[nodiscard]] const QueuePairView& view() const { return view_; }
  /// Returns all that the consumer sees, whole pages: what to register with a device.
  [[nodiscard]] std::span<std::byte> region() const { return {region_.get(), region_size_}; }

 private:
  /// What the first slot of a frame holds.
  struct Entry {
    void* packet;  ///< null once it was sent
    std::uint64_t stamp;
    std::uint16_t pieces;
    bool for_work;
  };
  struct FreeRegion {
    void operator()(std::byte* region) const;
  };

  explicit PacketQueues(const QueueShape& shape);

  [[nodiscard]] Entry& entry_of(std::uint64_t sequence) { return entries_[sequence & (slots_ - 1)]; }
  template <typename F>
  void end_frame(Entry& entry, Verdict verdict, std::uint16_t worked, F& f) {
    f(Released{entry.packet, verdict, worked, entry.stamp, oldest_});
    entry.packet = nullptr;
    oldest_ += entry.pieces;
  }

  // Set once.
  std::uint32_t slots_;
  std::size_t region_size_;
  std::unique_ptr<std::byte[], FreeRegion> region_;
  std::unique_ptr<Entry[]> entries_;  ///< the poster writes one, and by publish() it is the sender's
  QueuePairView view_;

  // The poster's line.
  alignas(kRingLine) std::uint64_t next_;
  std::uint64_t seen_freed_;
  std::atomic<std::uint64_t> published_;  ///< next_ as of the last publish()

  // The sender's line.
  alignas(kRingLine) std::uint64_t oldest_;
  std::uint64_t sent_;  ///< sequence of the next transmit descriptor to take
  std::uint64_t checked_ = 0;
  std::uint64_t unworked_ = 0;
  std::atomic<std::uint64_t> freed_;  ///< a copy of oldest_ for others
};

}  // namespace warpline::queues
