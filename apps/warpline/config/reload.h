// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/load.h"
#include "warpline/base/result.h"

namespace warpline::config {

/// A configuration that was read again while a run lasts.
struct Reloaded {
  LoadedConfig next;                 ///< the one in force, with the values that the run takes over
  std::vector<std::string> changed;  ///< options that it takes over, "--rate"
  std::vector<std::string> fixed;    ///< options that would be different, and stay as they are until the next start
};

/// Reads the configuration of the command line of `now` again. Errors are those of load().
[[nodiscard]] Result<Reloaded> reload(const LoadedConfig& now, const ReadFile& read_file);

}  // namespace warpline::config
