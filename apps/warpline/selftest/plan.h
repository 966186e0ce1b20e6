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
  std::uint16_t mtu = 1500;          ///< of the steps that are not about another one
  bool quick = false;                ///< fewer steps, and shorter ones
  bool hugepages = true;             ///< the runs use them
  /// The ports' own addresses, where frames for others do not reach them; empty: they do, or it is not known.
  std::vector<std::string> macs{};

  bool operator==(const Subject&) const = default;
};

/// kLink is the step in which the ports send to an address that neither has.
inline constexpr const char* kLink = "link";

/// Returns the name of the step without which no other is done.
[[nodiscard]] std::string link_step(const Subject& subject);

/// Returns the steps up to the rates, which the results of these decide. `no_gpu` says why those on a GPU are not done;
/// empty: they are. Pure.
[[nodiscard]] std::vector<Step> feature_steps(const Subject& subject, const std::string& no_gpu);

/// Returns the arguments of a run of `forward` between the ports, of which the second makes and checks what the first
/// forwards, or with one port of `ingest`, which checks what the port itself sends. `more` are appended.
[[nodiscard]] std::vector<std::string> verified_run(const Subject& subject, const std::vector<std::string>& more);

/// Returns the arguments with what all runs of the subject have in common.
[[nodiscard]] std::vector<std::string> with_common(const Subject& subject, std::vector<std::string> arguments);

/// Returns a command line for a shell.
[[nodiscard]] std::string command_line(const std::vector<std::string>& arguments);

}  // namespace warpline::selftest
