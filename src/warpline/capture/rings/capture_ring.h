// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "warpline/base/verdict.h"
#include "warpline/capture/pcapng.h"

namespace warpline::capture {

/// What is kept of a packet in a ring; its bytes lie behind it.
struct CapturedPacket {
  std::uint64_t ticks = 0;     ///< of the time-stamp counter
  std::uint32_t length = 0;    ///< bytes on the wire
  std::uint32_t captured = 0;  ///< bytes that were kept
  std::uint16_t port = 0;      ///< of the ethdev
  std::uint16_t queue = 0;     ///< of the port
  Verdict verdict = Verdict::forward;
  Direction direction = Direction::inbound;

  [[nodiscard]] std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(this + 1); }
  [[nodiscard]] const std::uint8_t* bytes() const { return reinterpret_cast<const std::uint8_t*>(this + 1); }
};

// A ring is a bounded queue of copies of packets between two threads, which may be of two processes, in memory that
// begins as zeros. One thread puts packets in by its CaptureRingInput, one takes them out by its CaptureRingOutput, in
// order; neither waits, locks or allocates. Each end believes only its own count of what it did, so whatever the other
// writes keeps it within the memory.

/// What rings of a capture look like.
struct RingShape {
  std::uint32_t slots;    ///< a power of two
  std::uint32_t snaplen;  ///< bytes that a slot has for a packet's

  static constexpr std::size_t kLine = 64;

  /// Returns the shape of rings that take about `memory` bytes each, with two slots at least.
  [[nodiscard]] static RingShape within(std::size_t memory, std::uint32_t snaplen) {
    const std::size_t slots = memory / RingShape{1, snaplen}.slot_bytes();
    return {static_cast<std::uint32_t>(std::bit_floor(std::max<std::size_t>(slots, 2))), snaplen};
  }
  /// Bytes of a slot, whole cache lines.
  [[nodiscard]] std::size_t slot_bytes() const {
    return (sizeof(CapturedPacket) + snaplen + kLine - 1) / kLine * kLine;
  }
  /// Bytes of a ring.
  [[nodiscard]] std::size_t bytes() const { return 2 * kLine + slots * slot_bytes(); }
  bool operator==(const RingShape&) const = default;
};

/// What both ends of a ring know of its memory, which begins with two lines: how many packets were put, and taken.
class CaptureRingEnd {
 public:
  [[nodiscard]] std::size_t slots() const { return mask_ + 1; }

 protected:
  CaptureRingEnd(std::byte* memory, RingShape shape)
      : memory_(memory), slot_bytes_(shape.slot_bytes()), mask_(shape.slots - 1U) {}

  [[nodiscard]] std::atomic_ref<std::uint64_t> put_count() const { return count_at(memory_); }
  [[nodiscard]] std::atomic_ref<std::uint64_t> taken_count() const { return count_at(memory_ + RingShape::kLine); }
  [[nodiscard]] CapturedPacket& slot(std::uint64_t i) const {
    return *reinterpret_cast<CapturedPacket*>(memory_ + 2 * RingShape::kLine + (i & mask_) * slot_bytes_);
  }

 private:
  static std::atomic_ref<std::uint64_t> count_at(std::byte* line) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(line));
  }

  std::byte* memory_;
  std::size_t slot_bytes_;
  std::uint64_t mask_;
};

/// The end of a ring that packets are put in by. One thread.
class CaptureRingInput : public CaptureRingEnd {
 public:
  /// `memory`: shape.bytes(), zeros, at a cache line; outlives it.
  CaptureRingInput(std::byte* memory, RingShape shape) : CaptureRingEnd(memory, shape) {}

  /// Returns the next free slot, to be filled in; null: there is none. It stays free until put().
  [[nodiscard]] CapturedPacket* free_slot() {
    if (put_ - taken_seen_ >= slots()) {
      taken_seen_ = taken_count().load(std::memory_order_acquire);
      if (put_ - taken_seen_ >= slots()) return nullptr;
    }
    return &slot(put_);
  }
  /// Hands over what free_slot() returned last. The one after the next is asked for, because another processor has read
  /// it since.
  void put() {
    put_count().store(++put_, std::memory_order_release);
    const auto* const later = reinterpret_cast<const std::byte*>(&slot(put_ + 1));
    __builtin_prefetch(later, 1);
    __builtin_prefetch(later + RingShape::kLine, 1);
  }

 private:
  std::uint64_t put_ = 0;
  std::uint64_t taken_seen_ = 0;
};

/// The end of a ring that packets are taken out by. One thread.
class CaptureRingOutput : public CaptureRingEnd {
 public:
  /// `memory` is what CaptureRingInput() has it be.
  CaptureRingOutput(std::byte* memory, RingShape shape) : CaptureRingEnd(memory, shape) {}

  /// Returns the oldest packet, which stays until pop(); null: there is none.
  [[nodiscard]] const CapturedPacket* front() {
    if (taken_ == put_seen_) {
      put_seen_ = put_count().load(std::memory_order_acquire);
      if (taken_ == put_seen_) return nullptr;
    }
    return &slot(taken_);
  }
  /// Gives the slot of front() back.
  void pop() { taken_count().store(++taken_, std::memory_order_release); }

 private:
  std::uint64_t taken_ = 0;
  std::uint64_t put_seen_ = 0;
};

}  // namespace warpline::capture
