// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

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
    counts.timed_out += other.counts.timed_out;
    consumed.merge(other.consumed);
    if (longest_open < other.longest_open) longest_open = other.longest_open;
  }
};

/// Assembles the packets of one path into frames, in host memory or in a GPU's. Each frame that is handed over is
/// summed, or given to a consumer of one's own, and freed.
class FrameSink {
 public:
  FrameSink() = default;
  FrameSink(const FrameSink&) = delete;
  FrameSink& operator=(const FrameSink&) = delete;
  virtual ~FrameSink() = default;

  /// Hands over what is not complete, consumes it and returns what there was, without bytes and sum if the consumer is
  /// one's own. Once, after the path's last packet, when all engines have ended. The environment error of a GPU that
  /// failed, or of a consumer that did not go on.
  [[nodiscard]] virtual Result<FrameTotals> end() = 0;
  /// Why frames are not taken any more, if a consumer of one's own did not go on. Any thread.
  [[nodiscard]] virtual std::optional<Error> failure() const { return std::nullopt; }
  /// Returns the bytes of GPU memory that frames and their assembler take.
  [[nodiscard]] virtual Bytes gpu_bytes() const { return {}; }
};

}  // namespace warpline::ingest
