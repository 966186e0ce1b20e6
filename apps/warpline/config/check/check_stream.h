// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/check/check.h"

namespace warpline::config {

/// What contradicts itself in a configuration of `stream`, beside what its port and pool are checked for. Without
/// `needs_port`, listening nowhere is fine.
[[nodiscard]] std::vector<Error> check_stream(const Config& config, const GivenOptions& given, bool needs_port);

}  // namespace warpline::config
