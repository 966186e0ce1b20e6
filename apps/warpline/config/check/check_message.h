// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/check/check.h"

namespace warpline::config {

/// What contradicts itself in a configuration of `message`.
[[nodiscard]] std::vector<Error> check_message(const Config& config, const GivenOptions& given);

}  // namespace warpline::config
