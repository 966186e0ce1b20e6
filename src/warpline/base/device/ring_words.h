// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "warpline/base/host_device.h"

namespace warpline {

// Words of rings and queues that host threads and kernels share.

inline constexpr std::size_t kRingLine = 64;

/// A word alone on its cache line, but for what who writes it says beside it of a burst that is traced.
struct alignas(kRingLine) RingWord {
  std::uint64_t value;
  std::uint64_t timed;  ///< of a ready word: not 0 if the engine is to say when it works on the burst
  std::uint64_t begun;  ///< of a done word, in ticks of the host's time-stamp counter; 0: the engine has not said
  std::uint64_t ended;  ///< likewise
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

/// Asked of every lane through the stop word. A lane never leaves a burst half done.
enum class RingStop : std::uint64_t {
  none,   ///< go on
  drain,  ///< end when the next burst of the lane is not published
  now,    ///< end after the burst in hand
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

}  // namespace warpline
