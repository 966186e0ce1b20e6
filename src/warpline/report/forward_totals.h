// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/forward/forwarder.h"
#include "warpline/report/report.h"
#include "warpline/traffic/traffic_worker.h"

namespace warpline {

/// Everything that `forwarder` and, on the far side of a loopback, `far` (may be null) counted so far. Any thread;
/// exact once all workers have ended.
[[nodiscard]] RunTotals totals_of(const Forwarder& forwarder, const TrafficGroup* far);

/// What the forwarder has sent so far. Cheap.
[[nodiscard]] Tally forwarded_by(const Forwarder& forwarder);

/// What a counting workload counted; nothing for the others. After Forwarder::finish().
[[nodiscard]] std::optional<FrameTally> counted_by(const Forwarder& forwarder);

}  // namespace warpline
