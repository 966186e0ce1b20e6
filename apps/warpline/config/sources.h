// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/load.h"
#include "config/options.h"

// The three sources of values. Each turns its own form into texts for options; problems are appended, not returned, so
// that `config check` can name them all.

namespace warpline::config {

using Problems = std::vector<Error>;

struct Assignment {
  const Option* option;
  std::vector<std::string> texts;  ///< one, unless the option is a list
  Origin origin;

  /// As an error names it: "--burst", "WARPLINE_FORWARD_BURST" or "a.toml:3: forward.burst".
  [[nodiscard]] std::string place() const;
};

/// A `[[port]]` table: set-up for the port with this spec.
struct PortTable {
  std::string spec;
  Origin origin;
  std::vector<Assignment> values;
};

struct FileContent {
  std::vector<Assignment> values;  ///< of every command; a port's set-up is from `[port-defaults]`
  std::vector<PortTable> ports;
};

[[nodiscard]] std::vector<Assignment> read_flags(Command command, const std::vector<std::string>& arguments,
                                                 Problems& problems);

/// Reads the variables of `command`, WARPLINE_<COMMAND>_<OPTION>. A name of that form without such an option is a
/// problem; all other names belong to other programs, or to other commands, and are ignored.
[[nodiscard]] std::vector<Assignment> read_environment(Command command, const Environment& environment,
                                                       Problems& problems);

/// `path` is for messages.
[[nodiscard]] FileContent read_config_file(std::string_view text, const std::string& path, Problems& problems);

/// The parts of a list option's text; none when it is empty.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

}  // namespace warpline::config
