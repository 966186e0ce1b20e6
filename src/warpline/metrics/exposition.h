// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "warpline/metrics/snapshot.h"

namespace warpline::metrics {

/// How a snapshot is written.
enum class Exposition : std::uint8_t {
  openmetrics,  ///< OpenMetrics 1.0
  text,         ///< Prometheus' text format 0.0.4, which older scrapers read
};

/// Returns the format that the HTTP header Accept prefers, by media range and weight (RFC 9110, 12.5.1).
[[nodiscard]] Exposition wanted_by(std::string_view accept);
/// Returns the HTTP header Content-Type.
[[nodiscard]] std::string_view content_type(Exposition exposition);
/// Writes a snapshot. Families without samples are left out.
[[nodiscard]] std::string write(const Snapshot& snapshot, Exposition exposition);

}  // namespace warpline::metrics
