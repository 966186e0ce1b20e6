// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "warpline/daemon/message_daemon.h"
#include "warpline/metrics/snapshot.h"
#include "warpline/service/totals.h"

namespace warpline {

/// What all clients of a daemon did, as the totals of a message server and client at once.
[[nodiscard]] service::MessageTotals daemon_totals(const daemon::MessageDaemon& daemon);
/// Who came to a daemon, and how they left.
[[nodiscard]] nlohmann::ordered_json door_json(const daemon::MessageDaemon& daemon);
/// What each client did: those that are there, and the last that were. `now`: of transport::NanoClock.
[[nodiscard]] nlohmann::ordered_json clients_json(const daemon::MessageDaemon& daemon, Nanos now);

/// Adds whom a daemon let in, and whom not.
void add_door_metrics(metrics::Snapshot& snapshot, const daemon::MessageDaemon& daemon);

}  // namespace warpline
