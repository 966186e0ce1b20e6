// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "warpline/memory/pool_settings.h"
#include "warpline/memory/recycle_setup.h"
#include "warpline/port/port.h"
#include "warpline/report/report.h"

namespace warpline::report {

/// What came of --recycle on `ports`, those whose sent buffers are to come back. When all workers have ended.
[[nodiscard]] RecycleTotals recycle_totals(memory::RecycleWay way, const memory::Recycling& recycling,
                                           std::span<const port::Port> ports);

/// One line for a run that was to recycle directly and never did though it received `packets`; unset for any other.
[[nodiscard]] std::optional<std::string> nothing_recycled(memory::RecycleWay way, const RecycleTotals& totals,
                                                          std::uint64_t packets);

}  // namespace warpline::report
