// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/stream/lanes/lane_shape.h"

namespace warpline::stream {

/// Threads of a lane's CTA: one for each descriptor of a burst.
inline constexpr unsigned kLaneThreads = LaneShape::kMostBurst;

/// Returns the address of the __global__ function (const LaneView* lanes, std::uint64_t first, std::uint64_t end), for
/// CTAs of kLaneThreads: CTA i takes the bursts `[first, end)` of lane i, one after the other, each when it is ready,
/// or ends when it is told to stop and no burst is ready. With `end` = `first` + 1 a launch is a burst. Where no device
/// code is built it is not defined.
[[nodiscard]] const void* stream_lanes_kernel();

/// Returns the address of the __global__ function (const LaneView* lanes), for CTAs of kLaneThreads: CTA i takes what
/// is in the queues of lane i, until it is told to stop and nothing is posted. Where no device code is built it is not
/// defined.
[[nodiscard]] const void* stream_queues_kernel();

}  // namespace warpline::stream
