// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "warpline/stream/lanes/thread_lane.h"
#include "warpline/stream/payload/payload_lane.h"
#include "warpline/stream/seeded_payload.h"

namespace warpline::stream {

/// Returns a lane on a thread of the host, with rings in host memory. `payload` outlives it. Of `setup` nothing but
/// `start` and `yield` is read. Errors: environment, if the system has no room for rings, or for a thread.
[[nodiscard]] Result<std::unique_ptr<PayloadLane>> make_thread_payload_lane(const PayloadShape& shape,
                                                                            const SeededPayload& payload,
                                                                            const ThreadLaneSetup& setup = {});

}  // namespace warpline::stream
