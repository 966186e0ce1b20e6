// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace warpline {

/// Who does the work on a burst: the thread that publishes it, host threads beside it, or a GPU: with a kernel launch a
/// burst, with a graph launch for several, or with one kernel that stays.
enum class EngineKind : std::uint8_t { inline_, thread, launch, graph, persistent };

[[nodiscard]] constexpr bool runs_on_gpu(EngineKind engine) { return engine >= EngineKind::launch; }
[[nodiscard]] constexpr std::string_view name(EngineKind engine) {
  constexpr std::string_view kNames[] = {"inline", "thread", "launch", "graph", "persistent"};
  return kNames[static_cast<std::size_t>(engine)];
}

/// What is done to each packet; workload/ has one functor each, `user` is of the header that the build names.
enum class WorkloadKind : std::uint8_t { none, mac_swap, count, checksum, spin, user };

}  // namespace warpline
