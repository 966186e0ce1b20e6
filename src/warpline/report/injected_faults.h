// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "warpline/base/statistics/run_totals.h"

namespace warpline::report {

/// `InjectedFaults` is how many frames a wire treated badly because the user asked for it.
struct InjectedFaults {
  std::uint64_t lost = 0;        ///< frames that did not arrive
  std::uint64_t duplicated = 0;  ///< second copies of frames
  std::uint64_t damaged = 0;     ///< frames with a flipped bit, or cut

  /// Sums up what net_vnic's extended counters say, by their names.
  [[nodiscard]] static InjectedFaults of(std::span<const std::pair<std::string, std::uint64_t>> counters) {
    InjectedFaults faults;
    for (const auto& [name, count] : counters) {
      const bool lost =
          name == "fault_loss" || name == "fault_flap" || name == "fault_reset" || name == "tx_queue_full";
      if (lost) faults.lost += count;
      if (name == "fault_duplicate") faults.duplicated += count;
      if (name == "fault_corrupt" || name == "fault_truncate") faults.damaged += count;
    }
    return faults;
  }

  /// Returns whether these faults account for everything that is missing, duplicated or wrong.
  [[nodiscard]] bool explain(const VerifyTotals& found) const {
    return found.bad <= damaged && found.duplicated <= duplicated && found.missing <= lost + damaged;
  }
};

}  // namespace warpline::report
