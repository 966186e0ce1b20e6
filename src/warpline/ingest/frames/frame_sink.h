// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/flow/frame_core.h"
#include "warpline/ingest/consumers/consumer.h"

namespace warpline::ingest {

/// What became of a path's packets and frames.
struct FrameTotals {
  flow::AssemblerCounts counts{};
  ConsumerTally consumed;          ///< packets in frames handed over, their payload bytes, and the sum of frame_sum.h
  std::uint64_t longest_open = 0;  ///< nanoseconds from a frame's first packet to the frame consumed, the longest

  void merge(const FrameTotals& other) {
    for (std::size_t i = 0; i < flow::kPlacements; ++i) counts.placements[i] += other.counts.placements[i];
    counts.complete += other.counts.complete;
    counts.incomplete += other.counts.incomplete;
    counts.missing += other.counts.missing;
    counts.skipped += other.counts.skipped;
    counts.restarts += other.counts.restarts;
    counts.streams += other.counts.streams;
    consumed.merge(other.consumed);
    longest_open = std::max(longest_open, other.longest_open);
  }
};

/// Assembles the packets of one path into frames, sums each frame that is handed over and frees it: in host memory, or
/// in a GPU's.
class FrameSink {
 public:
  FrameSink() = default;
  FrameSink(const FrameSink&) = delete;
  FrameSink& operator=(const FrameSink&) = delete;
  virtual ~FrameSink() = default;

  /// Hands over what is not complete, consumes it and returns what there was. Once, after the path's last packet, when
  /// all engines have ended. The environment error of a GPU that failed.
  [[nodiscard]] virtual Result<FrameTotals> end() = 0;
  /// Returns the bytes of GPU memory that frames and their assembler take.
  [[nodiscard]] virtual Bytes gpu_bytes() const { return {}; }
};

}  // namespace warpline::ingest
