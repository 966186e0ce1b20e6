// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "warpline/datapath/queue_path.h"
#include "warpline/metrics/snapshot.h"
#include "warpline/port/port.h"
#include "warpline/report/report.h"

namespace warpline::report {

// What reports and live tables show, as metrics. Of the thread that may read those totals.

/// Adds packets, drops by reason, stages, what was verified and the latency of a run.
void add(metrics::Snapshot& snapshot, const RunTotals& totals);
/// Adds what the devices count, whether their links are up, and how full pools of packets are.
void add(metrics::Snapshot& snapshot, std::span<const port::Port> ports);
/// Adds what each queue of these paths received and sent; `ports` are those that they are of.
void add(metrics::Snapshot& snapshot, std::span<const std::unique_ptr<datapath::QueuePath>> paths,
         std::span<const port::Port> ports);
/// Adds what a router did beside passing packets on.
void add(metrics::Snapshot& snapshot, const RoutingTotals& routing);
/// Adds what a capture wrote and left out.
void add(metrics::Snapshot& snapshot, const capture::CaptureTotals& capture);
/// Adds batches, copies, frames and delays of `ingest`.
void add(metrics::Snapshot& snapshot, const IngestReport& ingest);

}  // namespace warpline::report
