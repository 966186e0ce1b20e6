// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "warpline/base/host_device.h"

namespace warpline::ingest {

/// `ArrivalTable` knows which of the latest kWindow sequence numbers of each stream have arrived, for any number of
/// host or GPU threads at a time. It is a view of words that its maker owns and has zeroed; trivially copyable.
///
/// A sequence number has the entry `sequence % kWindow` of its stream, which holds the highest round, sequence /
/// kWindow, that arrived there. One atomic maximum says of each arrival what it is, in whatever order they come.
struct ArrivalTable {
  static constexpr std::uint64_t kWindow = std::uint64_t{1} << 18;

  std::uint32_t* rounds = nullptr;  ///< kWindow entries per stream; 0: nothing arrived
  std::uint16_t streams = 0;

  [[nodiscard]] static constexpr std::size_t bytes(std::uint16_t streams) {
    return streams * kWindow * sizeof(std::uint32_t);
  }

  /// Returns true if `sequence` arrives for the first time, false if it has arrived before or lies kWindow or more
  /// behind the highest that arrived in its entry, of which nothing is known.
  [[nodiscard]] WARPLINE_HD bool mark(std::uint16_t stream, std::uint64_t sequence) const {
    std::uint32_t* const entry = rounds + (stream * kWindow + sequence % kWindow);
    const auto round = static_cast<std::uint32_t>(sequence / kWindow + 1);
#if defined(__CUDA_ARCH__)
    return atomicMax(entry, round) < round;
#else
    const std::atomic_ref word(*entry);
    std::uint32_t seen = word.load(std::memory_order_relaxed);
    while (seen < round) {
      if (word.compare_exchange_weak(seen, round, std::memory_order_relaxed)) return true;
    }
    return false;
#endif
  }
};

}  // namespace warpline::ingest
