// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "warpline/base/frame.h"

namespace warpline::handoff {

/// What an engine sees of a burst ring: plain words and descriptors in one page-aligned region, so that the region can
/// be registered with CUDA as a whole and a kernel can use the very same words, atomically at the scope of the system.
///
///   offset 0            StopWord                    one line
///   kRingLine           RingWord ready[slots]       {sequence:32, 0:16, descriptors:16}, the producer writes
///   + slots lines       RingWord done[slots]        {sequence:32, worked:16, exceptions:16}, the engine writes
///   + slots lines       Segment segments[slots][segments_per_slot]
///
/// The burst with sequence s is in slot s & (slots - 1). Sequences count up from 1 and are compared modulo 2^32:
/// a word that is not the burst's own is of one that was in the slot before, fewer than 2^32 ago.
/// Lane k of K takes the sequences k + 1, k + 1 + K, ...

inline constexpr std::size_t kRingLine = 64;

/// A word alone on its cache line.
struct alignas(kRingLine) RingWord {
  std::uint64_t value;
};

inline constexpr unsigned kRingCountBits = 16;
inline constexpr unsigned kRingSequenceShift = 2 * kRingCountBits;
inline constexpr std::uint64_t kRingSequenceMask = (std::uint64_t{1} << 32) - 1;

[[nodiscard]] WARPLINE_HD constexpr std::uint64_t pack_ring_word(std::uint64_t sequence, std::uint16_t count,
                                                                 std::uint16_t worked = 0) {
  return sequence << kRingSequenceShift | std::uint64_t{worked} << kRingCountBits | count;
}
[[nodiscard]] WARPLINE_HD constexpr bool has_sequence(std::uint64_t word, std::uint64_t sequence) {
  return word >> kRingSequenceShift == (sequence & kRingSequenceMask);
}
/// Descriptors of a ready word, exceptions of a done word.
[[nodiscard]] WARPLINE_HD constexpr std::uint16_t count_of(std::uint64_t word) {
  return static_cast<std::uint16_t>(word);
}
[[nodiscard]] WARPLINE_HD constexpr std::uint16_t worked_of(std::uint64_t word) {
  return static_cast<std::uint16_t>(word >> kRingCountBits);
}

/// What a lane did to one burst. Counted where the work returns, not where it is to be called, so that a frame which a
/// lane passes over is missing here: the consumer compares with the frames that it was given (Burst::unworked).
struct BurstCounts {
  std::uint16_t worked = 0;      ///< frames that the work was called with
  std::uint16_t exceptions = 0;  ///< frames whose verdict is not `forward`
};

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

/// `StopView` is the word by which the lanes of an engine are told to end. It is a view: the word outlives it.
struct StopView {
  RingWord* stop;

  /// Any lane. Acquire: whatever was published before the request is seen by a look after this call.
  [[nodiscard]] RingStop stop_requested() const {
    return static_cast<RingStop>(std::atomic_ref(stop->value).load(std::memory_order_acquire));
  }

  /// The thread that runs the engine.
  void request_stop(RingStop how) const {
    std::atomic_ref(stop->value).store(static_cast<std::uint64_t>(how), std::memory_order_release);
  }
};

/// An engine's borrowed view of a ring; trivially copyable, so a kernel takes it by value.
struct EngineView : StopView {
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

  /// Hands the taken burst on to the consumer.
  /// Release: verdicts and packet bytes written before are visible to who sees the word. The counts are in the word
  /// itself, so they cost no store and no ordering of their own.
  void complete(std::uint64_t sequence, BurstCounts counts) const {
    std::atomic_ref(done[sequence & slot_mask].value)
        .store(pack_ring_word(sequence, counts.exceptions, counts.worked), std::memory_order_release);
  }

  /// Any thread: whether the burst with that sequence, published in this round of the slots, is complete.
  [[nodiscard]] bool is_done(std::uint64_t sequence) const {
    return has_sequence(std::atomic_ref(done[sequence & slot_mask].value).load(std::memory_order_acquire), sequence);
  }
};

}  // namespace warpline::handoff
