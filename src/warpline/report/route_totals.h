// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/report/report.h"
#include "warpline/router/router.h"

namespace warpline::report {

/// Everything that `router` counted so far. Any thread; exact once all workers have ended.
[[nodiscard]] RunTotals totals_of(const router::Router& router);

/// What the router has sent so far. Cheap.
[[nodiscard]] Tally sent_by(const router::Router& router);

/// What routing did. Control thread.
[[nodiscard]] RoutingTotals routing_of(const router::Router& router);

}  // namespace warpline::report
