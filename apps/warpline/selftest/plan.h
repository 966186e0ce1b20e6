// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "selftest/step.h"

namespace warpline::selftest {

/// `Subject` is what is tested.
struct Subject {
  std::vector<std::string> ports;    ///< specs: two that a cable joins, or one whose frames come back to it
  std::optional<std::uint16_t> gpu;  ///< CUDA ordinal
  bool quick = false;                ///< fewer steps, and shorter ones
  bool hugepages = true;             ///< the runs use them

  bool operator==(const Subject&) const = default;
};

/// Returns the steps up to the rates, which the results of these decide. Pure.
[[nodiscard]] std::vector<Step> feature_steps(const Subject& subject);

/// Returns the arguments of a run of `forward` between the ports, or with one port of `generate`: the second makes and
/// checks what the first forwards. `more` are appended.
[[nodiscard]] std::vector<std::string> verified_run(const Subject& subject, const std::vector<std::string>& more);

/// Returns the arguments with what all runs of the subject have in common.
[[nodiscard]] std::vector<std::string> with_common(const Subject& subject, std::vector<std::string> arguments);

/// Returns a command line for a shell.
[[nodiscard]] std::string command_line(const std::vector<std::string>& arguments);

}  // namespace warpline::selftest
