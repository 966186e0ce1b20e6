// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "warpline/base/verdict.h"
#include "warpline/capture/pcapng.h"

namespace warpline::capture {

/// What is kept of a packet in a CaptureRing; its bytes lie behind it.
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

/// A CaptureRing is a bounded queue of copies of packets between two threads, in memory that is taken when it is made.
/// One thread puts packets in, one takes them out, in order; neither waits, locks or allocates.
class CaptureRing {
 public:
  /// Has a power of two of slots, each of `snaplen` bytes, that take about `memory` bytes, and two at least.
  CaptureRing(std::size_t memory, std::uint32_t snaplen)
      : stride_((sizeof(CapturedPacket) + snaplen + kLine - 1) / kLine),
        mask_(std::bit_floor(std::max<std::size_t>(memory / (stride_ * kLine), 2)) - 1),
        lines_(stride_ * (mask_ + 1)) {
    for (std::uint64_t i = 0; i <= mask_; ++i) new (&slot(i)) CapturedPacket;
  }

  /// Returns the next free slot, to be filled in; null: there is none. It stays free until put(). Thread that puts.
  [[nodiscard]] CapturedPacket* free_slot() {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_seen_ > mask_) {
      head_seen_ = head_.load(std::memory_order_acquire);
      if (tail - head_seen_ > mask_) return nullptr;
    }
    return &slot(tail);
  }
  /// Hands over what free_slot() returned last. Thread that puts.
  void put() { tail_.store(tail_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  /// Returns the oldest packet, which stays until pop(); null: there is none. Thread that takes.
  [[nodiscard]] const CapturedPacket* front() {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_seen_) {
      tail_seen_ = tail_.load(std::memory_order_acquire);
      if (head == tail_seen_) return nullptr;
    }
    return &slot(head);
  }
  /// Gives the slot of front() back. Thread that takes.
  void pop() { head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  [[nodiscard]] std::size_t slots() const { return mask_ + 1; }

 private:
  static constexpr std::size_t kLine = 64;
  struct alignas(kLine) Line {
    std::byte bytes[kLine];
  };

  CapturedPacket& slot(std::uint64_t i) { return *reinterpret_cast<CapturedPacket*>(&lines_[(i & mask_) * stride_]); }

  alignas(kLine) std::atomic<std::uint64_t> tail_{0};
  std::uint64_t head_seen_ = 0;  ///< the putting thread's
  alignas(kLine) std::atomic<std::uint64_t> head_{0};
  std::uint64_t tail_seen_ = 0;        ///< the taking thread's
  alignas(kLine) std::size_t stride_;  ///< lines of a slot
  std::uint64_t mask_;
  std::vector<Line> lines_;
};

}  // namespace warpline::capture
