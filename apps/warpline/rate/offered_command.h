// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/load.h"
#include "rate/search_goal.h"
#include "rate/trial_report.h"
#include "warpline/base/result.h"

namespace warpline::rate {

/// OfferedCommand is a command of this program that load can be offered to: its arguments for every trial.
class OfferedCommand {
 public:
  /// Makes it of a command line without the program's name, such as "forward --loopback". A usage error if that is
  /// wrong by itself, says what the search has to say (rate, duration, JSON), or makes no load that could be set.
  [[nodiscard]] static Result<OfferedCommand> parse(const std::string& text, const config::Environment& environment,
                                                    const config::ReadFile& read_file);

  /// Returns the program's arguments for a trial, with frames of `frame_bytes` if given.
  [[nodiscard]] std::vector<std::string> arguments(const TrialInput& trial,
                                                   std::optional<std::uint16_t> frame_bytes) const;

  [[nodiscard]] LoadSource source() const { return source_; }
  /// interfaces is the number of ports that are offered the load, each; 1 for requests.
  [[nodiscard]] std::uint32_t interfaces() const { return interfaces_; }
  /// takes_size says whether the frames' size can be set.
  [[nodiscard]] bool takes_size() const { return source_ == LoadSource::generator; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  /// A port on the command line.
  struct GivenPort {
    std::string spec;
    bool supplied = false;  ///< its wire supplies frames, at a rate that `spec` does not say
  };

  [[nodiscard]] Result<void> take(const config::LoadedConfig& loaded);
  [[nodiscard]] Result<void> take_ports(const config::LoadedConfig& loaded);

  std::string text_;
  std::vector<std::string> words_;  ///< of the command line, without the ports where their wires supply frames
  std::vector<GivenPort> ports_;    ///< those, in their order
  LoadSource source_ = LoadSource::generator;
  std::uint32_t interfaces_ = 1;
};

}  // namespace warpline::rate
