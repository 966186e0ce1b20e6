// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "warpline/metrics/snapshot.h"

struct rte_tel_data;

namespace warpline::exporter {

// What DPDK's telemetry says of a snapshot. Each function fills `answer`, and returns 0, or a negative errno if there
// is nothing to say.

/// Says the values of the metric `name`, which whoever asks has written, or all names if it is empty.
[[nodiscard]] int say_metrics(const metrics::Snapshot& snapshot, std::string_view name, rte_tel_data* answer);
/// Says the metrics that have one value.
[[nodiscard]] int say_totals(const metrics::Snapshot& snapshot, rte_tel_data* answer);
/// Says the packets that were dropped, by reason, without zeros.
[[nodiscard]] int say_drops(const metrics::Snapshot& snapshot, rte_tel_data* answer);

}  // namespace warpline::exporter
