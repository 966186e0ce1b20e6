// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>

#include "warpline/base/frame.h"
#include "warpline/base/kinds.h"
#include "warpline/base/verdict.h"

namespace warpline::workload {

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
