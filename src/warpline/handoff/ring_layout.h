// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "warpline/base/device/ring_words.h"
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

/// What a lane did to one burst. Counted where the work returns, not where it is to be called, so that a frame which a
/// lane passes over is missing here: the consumer compares with the frames that it was given (Burst::unworked).
struct BurstCounts {
  std::uint16_t worked = 0;      ///< frames that the work was called with
  std::uint16_t exceptions = 0;  ///< frames whose verdict is not `forward`
};

/// A published burst's descriptors. The frames lie one after another; a descriptor is the first of its frame when it is
/// the burst's first or the one before it has `more` == 0.
struct BurstView {
  Segment* segments = nullptr;
  std::uint16_t count = 0;  ///< descriptors; 0: nothing was taken
  explicit operator bool() const { return count != 0; }
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

  /// Returns true if the producer wants to be told when the taken burst is worked on.
  [[nodiscard]] bool wants_times(std::uint64_t sequence) const { return ready[sequence & slot_mask].timed != 0; }
  /// Tells it, before complete().
  void note_times(std::uint64_t sequence, std::uint64_t begun, std::uint64_t ended) const {
    done[sequence & slot_mask].begun = begun;
    done[sequence & slot_mask].ended = ended;
  }

  /// Any thread: whether the burst with that sequence, published in this round of the slots, is complete.
  [[nodiscard]] bool is_done(std::uint64_t sequence) const {
    return has_sequence(std::atomic_ref(done[sequence & slot_mask].value).load(std::memory_order_acquire), sequence);
  }
};

}  // namespace warpline::handoff
