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

/// What users write for each engine.
constexpr auto names_of(EngineKind) {
  return enum_names<EngineKind>({"inline", "thread", "launch", "graph", "persistent"});
}

/// True for launch, graph and persistent.
[[nodiscard]] constexpr bool runs_on_gpu(EngineKind engine) { return engine >= EngineKind::launch; }

/// Who does a part of the work that either may do.
enum class ProcessorKind : std::uint8_t { cpu, gpu };

/// What users write for each processor.
constexpr auto names_of(ProcessorKind) { return enum_names<ProcessorKind>({"cpu", "gpu"}); }

/// WARPLINE_WORKLOADS(X) is X(enumerator, name, functor) for each workload, the functor being a type of workload/. All
/// that must know every workload is made from this list: the enum, its names, who calls the functors, and their
/// kernels.
#define WARPLINE_WORKLOADS(X)                                                                  \
  X(none, "none", NoWork)                 /* nothing is done */                                \
  X(mac_swap, "mac-swap", MacSwap)        /* its MAC addresses are exchanged */                \
  X(count, "count", Count)                /* it is parsed and counted */                       \
  X(checksum, "checksum", ChecksumVerify) /* its checksums are verified; if wrong, it drops */ \
  X(spin, "spin", Spin<>)                 /* so much time is spent on it */                    \
  X(user, "user", UserWork)               /* what the header says that the build names */

/// What is done to each packet.
enum class WorkloadKind : std::uint8_t {
#define WARPLINE_ENUMERATOR(enumerator, name, functor) enumerator,
  WARPLINE_WORKLOADS(WARPLINE_ENUMERATOR)
#undef WARPLINE_ENUMERATOR
};
/// What users write for each workload.
constexpr auto names_of(WorkloadKind) {
#define WARPLINE_NAME(enumerator, name, functor) name,
  return enum_names<WorkloadKind>({WARPLINE_WORKLOADS(WARPLINE_NAME)});
#undef WARPLINE_NAME
}

}  // namespace warpline
