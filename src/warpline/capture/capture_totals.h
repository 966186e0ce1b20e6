// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "warpline/base/statistics/run_totals.h"
#include "warpline/base/verdict.h"

namespace warpline::capture {

/// What the sources of a capture did not put in their rings.
struct SourceTotals {
  std::uint64_t filtered = 0;                       ///< that the filter did not match
  std::array<std::uint64_t, kVerdicts> left_out{};  ///< that found their ring full, by verdict
};

/// What a capture counted up to some moment. Each packet that it was to take is in exactly one of `packets`,
/// `ring_full` and `write_failed`.
struct CaptureTotals {
  std::uint64_t packets = 0;       ///< written
  std::uint64_t bytes = 0;         ///< kept of these
  DropTotals drops{};              ///< those of these that were dropped, by reason
  std::uint64_t ring_full = 0;     ///< left out because the writer was behind
  std::uint64_t write_failed = 0;  ///< left out because the file took no more: a full disk
  DropTotals left_out_drops{};     ///< those of both that were dropped, by reason
  std::uint64_t filtered = 0;      ///< that the filter did not match
  std::uint64_t overwritten = 0;   ///< written, and gone since, with a file that was replaced to keep within the limit
  std::vector<std::string> files;  ///< oldest first
  std::string failure;             ///< why the last write failed, once the capture has ended; empty: none has

  [[nodiscard]] std::uint64_t left_out() const { return ring_full + write_failed; }
};

}  // namespace warpline::capture
