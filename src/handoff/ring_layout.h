// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/frame.h"

namespace warpline {

/// What an engine sees of a burst ring: plain words and descriptors in one page-aligned region, so that the region can
/// be registered with CUDA as a whole and a kernel can use cuda::atomic_ref at system scope on the very same words.
///
///   offset 0            StopWord                    one line
///   kRingLine           RingWord ready[slots]       {sequence:48, descriptors:16}, the producer writes
///   + slots lines       RingWord done[slots]        {sequence:48, exceptions:16}, the engine writes
///   + slots lines       Segment segments[slots][segments_per_slot]
///
/// The burst with sequence s is in slot s & (slots - 1). Sequences count up from 1 and are compared modulo 2^48.
/// Lane k of K takes the sequences k + 1, k + 1 + K, ...

inline constexpr std::size_t kRingLine = 64;

/// A word alone on its cache line.
struct alignas(kRingLine) RingWord {
  std::uint64_t value;
};

inline constexpr unsigned kRingCountBits = 16;
inline constexpr std::uint64_t kRingSequenceMask = (std::uint64_t{1} << 48) - 1;

[[nodiscard]] WARPLINE_HD constexpr std::uint64_t pack_ring_word(std::uint64_t sequence, std::uint16_t count) {
  return sequence << kRingCountBits | count;
}
[[nodiscard]] WARPLINE_HD constexpr bool has_sequence(std::uint64_t word, std::uint64_t sequence) {
  return word >> kRingCountBits == (sequence & kRingSequenceMask);
}
[[nodiscard]] WARPLINE_HD constexpr std::uint16_t count_of(std::uint64_t word) {
  return static_cast<std::uint16_t>(word);
}

/// Asked of every lane through the stop word. A lane never leaves a burst half done.
enum class RingStop : std::uint64_t {
  none,   ///< go on
  drain,  ///< end when the next burst of the lane is not published
  now,    ///< end after the burst in hand
};

/// A published burst's descriptors. The frames lie one after another; a descriptor is the first of its frame when it is
/// the burst's first or the one before it has `more` == 0.
struct BurstView {
  Segment* segments = nullptr;
  std::uint16_t count = 0;  ///< descriptors; 0: nothing was taken
  explicit operator bool() const { return count != 0; }
};

/// An engine's borrowed view of a ring; trivially copyable, so a kernel takes it by value.
struct EngineView {
  RingWord* stop;
  RingWord* ready;
  RingWord* done;
  Segment* segments;
  std::uint32_t slot_mask;
  std::uint32_t segments_per_slot;
  std::uint64_t first_sequence;

  /// The burst with that sequence, or nothing when it is not published yet. Called by the lane that owns the sequence.
  /// Acquire: the descriptors and all that the producer wrote before publish() are visible.
  [[nodiscard]] BurstView take(std::uint64_t sequence) const {
    const std::uint64_t slot = sequence & slot_mask;
    const std::uint64_t word = std::atomic_ref(ready[slot].value).load(std::memory_order_acquire);
    if (!has_sequence(word, sequence)) return {};
    return {segments + slot * segments_per_slot, count_of(word)};
  }

  /// Hands the taken burst on to the consumer. `exceptions`: its frames whose verdict is not `forward`.
  /// Release: verdicts and packet bytes written before are visible to who sees the word.
  void complete(std::uint64_t sequence, std::uint16_t exceptions) const {
    std::atomic_ref(done[sequence & slot_mask].value)
        .store(pack_ring_word(sequence, exceptions), std::memory_order_release);
  }

  /// Any thread: whether the burst with that sequence, published in this round of the slots, is complete.
  [[nodiscard]] bool is_done(std::uint64_t sequence) const {
    return has_sequence(std::atomic_ref(done[sequence & slot_mask].value).load(std::memory_order_acquire), sequence);
  }

  /// Any lane. Acquire: whatever was published before the request is seen by a take() after this call.
  [[nodiscard]] RingStop stop_requested() const {
    return static_cast<RingStop>(std::atomic_ref(stop->value).load(std::memory_order_acquire));
  }

  /// The thread that runs the engine.
  void request_stop(RingStop how) const {
    std::atomic_ref(stop->value).store(static_cast<std::uint64_t>(how), std::memory_order_release);
  }
};

}  // namespace warpline
