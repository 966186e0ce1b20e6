// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/metrics/snapshot.h"
#include "warpline/service/totals.h"

namespace warpline::service {

/// Adds requests, sessions and payload of `message`. Of the thread that may read those totals.
void add(metrics::Snapshot& snapshot, const MessageTotals& totals);
/// Adds packets, drops by reason, and what the protocol and transports counted.
void add(metrics::Snapshot& snapshot, const PacketTotals& packets);

}  // namespace warpline::service
