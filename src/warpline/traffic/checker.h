// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <rte_mbuf.h>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/statistics/histogram.h"
#include "warpline/base/verdict.h"
#include "warpline/traffic/sequence_window.h"
#include "warpline/traffic/traffic.h"
#include "warpline/traffic/zeroed_array.h"

namespace warpline::traffic {

/// What the far side's workload must have done to the MAC addresses.
enum class MacRule : std::uint8_t {
  unchanged,
  swapped,  ///< exactly once
  either,   ///< the far side's workload is not known
};

/// Written by the checker's lcore, read by any thread.
struct alignas(64) VerifyCounters {
  Counter checked;     ///< frames looked at
  Counter bad;         ///< ours, with wrong bytes
  Counter distinct;    ///< sequence numbers that arrived, each counted once
  Counter duplicated;  ///< arrived again within the window
  Counter reordered;   ///< arrived after a later one of the same flow (RFC 4737, 3.3)
  Counter late;        ///< arrived when the window had passed; not in `distinct`, so counted as missing too
};

/// Verifies every byte of what comes back, of any stream. Owner: one lcore.
class Checker {
 public:
  struct Options {
    MacRule macs = MacRule::either;
    std::uint16_t streams = 1;                      ///< stamps of stream 0 .. streams-1 are ours
    std::uint64_t window = std::uint64_t{1} << 20;  ///< sequence numbers a stream that duplicates are found in
    std::uint64_t started = 0;                      ///< ticks; what is stamped before is of an earlier run, not ours
    std::uint64_t latency_from = 0;                 ///< first sequence number of a stream whose latency counts
  };

  /// Takes up to window / 8 + 8 * flows bytes a stream, as its frames arrive. The plan must outlive it.
  Checker(const TrafficPlan& plan, const Options& options);

  /// `ticks`: when it was received. forward: a good frame (a late or reordered one too); otherwise why it is none:
  /// corrupt, unstamped or duplicate. Frees nothing.
  [[nodiscard]] Verdict check(const rte_mbuf* mbuf, std::uint64_t ticks);

  /// Sequence numbers of `stream` that arrived here, each counted once.
  [[nodiscard]] std::uint64_t distinct_of(std::uint16_t stream) const { return streams_[stream].distinct; }

  /// One more than the highest sequence number of `stream` that arrived here.
  [[nodiscard]] std::uint64_t end_of(std::uint16_t stream) const {
    return stream < streams_.size() ? streams_[stream].window.end() : 0;
  }

  [[nodiscard]] const VerifyCounters& counters() const { return counters_; }
  /// Nanoseconds from made to received, of distinct and late frames.
  [[nodiscard]] const Histogram& latency() const { return latency_; }

 private:
  struct StreamState {
    StreamState(std::uint64_t window_size, std::uint32_t flows) : window(window_size), flow_end(flows) {}

    SequenceWindow window;
    std::uint64_t distinct = 0;
    ZeroedArray<std::uint64_t> flow_end;  ///< one more than the highest sequence number of each flow
    FramePlace place;                     ///< of the frame expected next
  };

  /// All of it but duplicates. Sets `stamp` and `place` when it returns forward.
  [[nodiscard]] Verdict verify(const rte_mbuf* mbuf, Stamp& stamp, FramePlace& place) const;
  [[nodiscard]] bool macs_match(const std::uint8_t* head) const;
  [[nodiscard]] bool pattern_matches(const rte_mbuf* mbuf, const Stamp& stamp, std::uint32_t length) const;

  const TrafficPlan& plan_;
  Options options_;
  std::array<std::uint8_t, 12> swapped_macs_;
  double nanos_per_tick_;
  std::vector<StreamState> streams_;
  VerifyCounters counters_;
  Histogram latency_;
};

}  // namespace warpline::traffic
