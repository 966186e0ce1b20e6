// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpline/base/histogram.h"
#include "warpline/base/verdict.h"

namespace warpline {

/// Bytes are of frames without FCS; 0 beside packets means that nobody counted them, and they stay out of reports.
struct Tally {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] bool has_bytes() const { return bytes != 0 || packets == 0; }

  Tally& operator+=(const Tally& other) {
    packets += other.packets;
    bytes += other.bytes;
    return *this;
  }
  auto operator<=>(const Tally&) const = default;
};

struct StageTotals {
  std::string name;
  std::uint64_t calls = 0;
  std::uint64_t packets = 0;
  std::uint64_t sampled_ticks = 0;  ///< spent on `sampled_packets`
  std::uint64_t sampled_packets = 0;

  /// Ticks of the time-stamp counter; 0 when no burst was timed.
  [[nodiscard]] double cycles_per_packet() const;
  [[nodiscard]] double batch_mean() const;
};

struct VerifyTotals {
  std::uint64_t checked = 0;
  std::uint64_t bad = 0;
  std::uint64_t missing = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t late = 0;

  [[nodiscard]] bool clean() const { return bad == 0 && missing == 0 && duplicated == 0; }
};

/// Nanoseconds.
struct LatencyTotals {
  std::uint64_t count = 0;
  std::uint64_t p50 = 0, p90 = 0, p99 = 0, p999 = 0, p99999 = 0, max = 0;

  [[nodiscard]] static LatencyTotals of(const Histogram& histogram);
};

using DropTotals = std::array<std::uint64_t, kVerdicts>;

/// What was counted up to some moment, over all ports that the process drives.
struct RunTotals {
  Tally rx;
  Tally tx;
  std::optional<Tally> delivered;
  std::optional<Tally> generated;
  DropTotals drops{};
  std::uint64_t in_flight = 0;
  std::optional<VerifyTotals> verify;
  std::optional<LatencyTotals> latency;
  std::vector<StageTotals> stages;
  std::optional<std::uint64_t> recycled;  ///< buffers, as RecycleTotals::recycled

  [[nodiscard]] std::uint64_t dropped() const;
  /// The conservation law: rx + generated = tx + delivered + drops + in_flight. Exact once all workers have stopped.
  [[nodiscard]] bool conserved() const;
};

/// Packets and bytes in so many seconds, the warm-up left out.
struct Throughput {
  Tally tally;
  double seconds = 0;

  [[nodiscard]] double mpps() const;
  [[nodiscard]] double gbps_l1() const;  ///< frame, FCS, preamble and gap: 24 bytes more than a Tally counts
  [[nodiscard]] double gbps_l2() const;  ///< frame and FCS: 4 bytes more
};

}  // namespace warpline
