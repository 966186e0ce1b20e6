// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/enum_names.h"

namespace warpline {

/// Who does the work on a burst: the thread that publishes it, host threads beside it, or a GPU: with a kernel launch a
/// burst, with a graph launch for several, or with one kernel that stays.
enum class EngineKind : std::uint8_t { inline_, thread, launch, graph, persistent };

template <>
inline constexpr auto kEnumNames<EngineKind> =
    enum_names<EngineKind>({"inline", "thread", "launch", "graph", "persistent"});

/// True for launch, graph and persistent.
[[nodiscard]] constexpr bool runs_on_gpu(EngineKind engine) { return engine >= EngineKind::launch; }

/// What is done to each packet; workload/ has one functor each, `user` is of the header that the build names.
enum class WorkloadKind : std::uint8_t { none, mac_swap, count, checksum, spin, user };
template <>
inline constexpr auto kEnumNames<WorkloadKind> =
    enum_names<WorkloadKind>({"none", "mac-swap", "count", "checksum", "spin", "user"});

}  // namespace warpline
