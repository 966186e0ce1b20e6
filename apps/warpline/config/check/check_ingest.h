// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/check/check.h"

namespace warpline::config {

/// The problems of `ingest` alone: path, engine, memory, budget and consumer that do not fit together.
[[nodiscard]] std::vector<Error> check_ingest(const Config& config, const GivenOptions& given);

}  // namespace warpline::config
