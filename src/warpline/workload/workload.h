// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/base/kinds.h"
#include "warpline/base/verdict.h"

namespace warpline::workload {

/// How much of a frame is read or written, the least first.
enum class FrameAccess : std::uint8_t {
  nothing,
  headers,
  everything,
};

/// What has become of a frame that is forwarded.
enum class FrameEffect : std::uint8_t {
  unchanged,
  macs_swapped,  ///< its MAC addresses are exchanged, and nothing else
  unknown,       ///< nobody but the workload knows
};

/// What a workload says of itself, as `static constexpr WorkloadTraits kTraits`, so that others need not know it by
/// name. One that says nothing may do anything to a frame.
struct WorkloadTraits {
  FrameAccess access = FrameAccess::everything;
  FrameEffect effect = FrameEffect::unknown;
  bool any_length = false;  ///< runts and giants go through it too; they are dropped before all others
  bool takes_time = false;  ///< made by `Work::taking(Nanos)`: so much time is spent on each packet
};

/// kTraitsOf is what `Work` says of itself.
template <typename Work>
inline constexpr WorkloadTraits kTraitsOf = [] {
  if constexpr (requires { Work::kTraits; }) {
    return Work::kTraits;
  } else {
    return WorkloadTraits{};
  }
}();

/// What is done to each packet: a small value that an engine copies to each of its workers. Called with every frame
/// that is to be worked on, in any order; reads and writes nothing but the frame's bytes and itself. Afterwards the
/// copies may be merged into one.
template <typename W>
concept Workload = std::copyable<W> && requires(W work, const W other, FrameRef frame) {
  { work(frame) } -> std::same_as<Verdict>;
  { work.merge(other) } -> std::same_as<void>;
  { W::kKind } -> std::convertible_to<WorkloadKind>;
  { W::kStateless } -> std::convertible_to<bool>;  // nothing is counted: merge does nothing
};

}  // namespace warpline::workload
