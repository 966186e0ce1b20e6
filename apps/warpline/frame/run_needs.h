// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/config.h"
#include "sandbox/sandbox.h"

namespace warpline {

/// Returns what a run still needs once it is set up: the files that it reads again or makes, and what its ports do at
/// the end. `config_file`: the configuration file; empty: none. `physical`: devices reach memory by physical addresses.
[[nodiscard]] sandbox::Needs needs_of(const config::Config& config, const std::string& config_file, bool physical);

}  // namespace warpline
