// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/forward/forwarder.h"
#include "warpline/report/report.h"
#include "warpline/traffic/traffic_worker.h"

namespace warpline::report {

/// Everything that `forwarder` and, on the far side of a loopback, `far` (may be null) counted so far. Any thread;
/// exact once all workers have ended.
[[nodiscard]] RunTotals totals_of(const forward::Forwarder& forwarder, const traffic::TrafficGroup* far);

/// What the forwarder has sent so far. Cheap.
[[nodiscard]] Tally forwarded_by(const forward::Forwarder& forwarder);

/// What a counting workload counted; nothing for the others. After Forwarder::finish().
[[nodiscard]] std::optional<workload::FrameTally> counted_by(const forward::Forwarder& forwarder);

}  // namespace warpline::report
