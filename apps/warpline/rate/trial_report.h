// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "rate/search_goal.h"
#include "warpline/base/result.h"

namespace warpline::rate {

/// LoadSource is who makes the load of a command, and so where its report says what became of it.
enum class LoadSource : std::uint8_t {
  generator,  ///< the command's own generator, whose checker looks at what comes back
  wire,       ///< software NICs that supply frames at a rate; the command counts what it forwards
  client,     ///< a message client: requests and their responses
};

/// The offered load may be less than the intended one by this part: less than that is no trial at that load, and counts
/// as loss.
inline constexpr double kOfferedTolerance = 0.005;

/// TrialReport is what a command's report says of a trial. Numbers are of all ports, or sessions, together.
struct TrialReport {
  std::uint64_t sent = 0;                           ///< frames, or requests, offered
  std::uint64_t delivered = 0;                      ///< of these forwarded, or answered
  double offered_per_s = 0;                         ///< from the first to the last that was sent
  double frame_bytes = 0;                           ///< mean, without FCS; 0: unknown
  nlohmann::json drops = nlohmann::json::object();  ///< by reason
  nlohmann::json verify;                            ///< null: nothing was verified
  nlohmann::json latency_ns;                        ///< null: none was measured

  /// Returns what the search needs to know of a trial at `load` on each of `interfaces`. An offered load that fell
  /// short of the intended one counts as lost (RFC 9971, section 4.9.1).
  [[nodiscard]] TrialOutput output(const TrialInput& trial, std::uint32_t interfaces) const;
};

/// Reads the JSON report of a run. A verification error if bytes were wrong, frames came twice, or some are unaccounted
/// for: that is no loss. An environment error for a report that lacks what is needed.
[[nodiscard]] Result<TrialReport> read_trial_report(const std::string& text, LoadSource source, Nanos duration);

}  // namespace warpline::rate
