// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "warpline/stream/lanes/segment_lane.h"

namespace warpline::stream {

/// Starts a thread that runs `body`.
using StartThread = std::function<Result<std::thread>(std::function<void()> body)>;
/// Starts one that may run anywhere. Errors: environment.
[[nodiscard]] Result<std::thread> start_anywhere(std::function<void()> body);

/// How a lane on a thread of the host is made.
struct ThreadLaneSetup {
  StartThread start{};    ///< unset: start_anywhere
  bool yield = false;     ///< other threads need its core: see Turns
  bool populate = false;  ///< take the memory of all rings at once, not as they are first written
};

/// Returns a lane on a thread of the host, with rings in host memory: a HostLane that polls for bursts, or
/// what is in its queues. Errors: environment, if the system has no room for the rings.
[[nodiscard]] Result<std::unique_ptr<SegmentLane>> make_thread_lane(const LaneShape& shape, ThreadLaneSetup setup = {});

}  // namespace warpline::stream
