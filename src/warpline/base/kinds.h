// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/enum_names.h"

namespace warpline {

/// Who does the work on a burst.
enum class EngineKind : std::uint8_t {
  inline_,     ///< the thread that publishes it
  thread,      ///< host threads beside it
  launch,      ///< a GPU, with a kernel launch a burst
  graph,       ///< a GPU, with a graph launch for several bursts
  persistent,  ///< a GPU, with one kernel that stays
};

constexpr auto names_of(EngineKind) {
  return enum_names<EngineKind>({"inline", "thread", "launch", "graph", "persistent"});
}

/// True for launch, graph and persistent.
[[nodiscard]] constexpr bool runs_on_gpu(EngineKind engine) { return engine >= EngineKind::launch; }

/// What is done to each packet; workload/ has one functor each, `user` is of the header that the build names.
enum class WorkloadKind : std::uint8_t {
  none,      ///< nothing
  mac_swap,  ///< its MAC addresses are exchanged
  count,     ///< it is parsed and counted
  checksum,  ///< its checksums are verified; with a wrong one it is dropped
  spin,      ///< so much time is spent on it
  user,      ///< what the header says
};
constexpr auto names_of(WorkloadKind) {
  return enum_names<WorkloadKind>({"none", "mac-swap", "count", "checksum", "spin", "user"});
}

}  // namespace warpline
