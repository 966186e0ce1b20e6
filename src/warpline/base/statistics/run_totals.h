// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpline/base/statistics/histogram.h"
#include "warpline/base/verdict.h"

namespace warpline {

/// Bytes are of frames without FCS; 0 beside packets means that nobody counted them, and they stay out of reports.
struct Tally {
  std::uint64_t packets = 0;  ///< frames, each once
  std::uint64_t bytes = 0;    ///< of these

  [[nodiscard]] bool has_bytes() const { return bytes != 0 || packets == 0; }  ///< false if nobody counted bytes

  /// Adds packets and bytes.
  Tally& operator+=(const Tally& other) {
    packets += other.packets;
    bytes += other.bytes;
    return *this;
  }
  auto operator<=>(const Tally&) const = default;
};

/// What all loops of one kind did: receiving, working or transmitting.
struct StageTotals {
  std::string name;                   ///< as in reports
  std::uint64_t calls = 0;            ///< bursts that had packets
  std::uint64_t packets = 0;          ///< in all bursts
  std::uint64_t sampled_ticks = 0;    ///< spent on `sampled_packets`
  std::uint64_t sampled_packets = 0;  ///< packets of the bursts that were timed

  /// Ticks of the time-stamp counter; 0 when no burst was timed.
  [[nodiscard]] double cycles_per_packet() const;
  [[nodiscard]] double batch_mean() const;  ///< packets a call; 0 without any
};

/// What was found in packets that came back to a checker, or to the transmitting side of an engine.
struct VerifyTotals {
  std::uint64_t checked = 0;     ///< frames looked at
  std::uint64_t bad = 0;         ///< with wrong bytes, or not worked on
  std::uint64_t missing = 0;     ///< sent and not seen again in time
  std::uint64_t duplicated = 0;  ///< arrived again
  std::uint64_t reordered = 0;   ///< arrived after a later one of the same flow
  std::uint64_t late = 0;        ///< arrived when the window had passed: missing too

  [[nodiscard]] bool clean() const { return bad == 0 && missing == 0 && duplicated == 0; }  ///< reordering allowed
};

/// Nanoseconds.
struct LatencyTotals {
  /// Latencies recorded.
  std::uint64_t count = 0;

  /// @{
  /// Quantiles, such as p999 of 99.9 %, and the largest.
  std::uint64_t p50 = 0, p90 = 0, p99 = 0, p999 = 0, p99999 = 0, max = 0;
  /// @}

  /// Reads them out of a histogram of nanoseconds.
  [[nodiscard]] static LatencyTotals of(const Histogram& histogram);
};

/// Packets dropped, indexed by Verdict.
using DropTotals = std::array<std::uint64_t, kVerdicts>;

/// What was counted up to some moment, over all ports that the process drives.
struct RunTotals {
  Tally rx;                               ///< received
  Tally tx;                               ///< sent
  std::optional<Tally> delivered;         ///< taken by the program itself; unset: it takes none
  std::optional<Tally> generated;         ///< made by the program itself; unset: it makes none
  DropTotals drops{};                     ///< by reason
  std::uint64_t in_flight = 0;            ///< received or made, and neither sent nor dropped yet
  std::optional<VerifyTotals> verify;     ///< unset: nothing was checked
  std::optional<LatencyTotals> latency;   ///< unset: none was measured
  std::vector<StageTotals> stages;        ///< in the order that packets pass them
  std::optional<std::uint64_t> recycled;  ///< buffers, as RecycleTotals::recycled

  [[nodiscard]] std::uint64_t dropped() const;  ///< sum of `drops`
  /// The conservation law: rx + generated = tx + delivered + drops + in_flight. Exact once all workers have stopped.
  [[nodiscard]] bool conserved() const;
};

/// Packets and bytes in so many seconds, the warm-up left out.
struct Throughput {
  Tally tally;         ///< what was counted
  double seconds = 0;  ///< how long that took

  [[nodiscard]] double mpps() const;     ///< million packets a second
  [[nodiscard]] double gbps_l1() const;  ///< frame, FCS, preamble and gap: 24 bytes more than a Tally counts
  [[nodiscard]] double gbps_l2() const;  ///< frame and FCS: 4 bytes more
};

}  // namespace warpline
