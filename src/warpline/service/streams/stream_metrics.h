// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/metrics/snapshot.h"
#include "warpline/service/streams/send/send_report.h"
#include "warpline/service/streams/stream_report.h"

namespace warpline::service {

/// Adds frames, connections and payload of `stream receive` and `stream proxy`. Of the thread that may read those
/// totals.
void add(metrics::Snapshot& snapshot, const StreamTotals& totals);
/// Adds those of `stream send`.
void add(metrics::Snapshot& snapshot, const SendTotals& totals);

}  // namespace warpline::service
