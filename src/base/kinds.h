// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpline {

/// Who does the work on a burst: the thread that publishes it, or host threads beside it.
enum class EngineKind : std::uint8_t { inline_, thread };

/// What is done to each packet; workload/ has one functor each.
enum class WorkloadKind : std::uint8_t { none, mac_swap, count, checksum, spin };

}  // namespace warpline
