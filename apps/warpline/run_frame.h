// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/load.h"
#include "warpline/memory/recycle_setup.h"
#include "warpline/port/port.h"
#include "warpline/report/live.h"
#include "warpline/report/report.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/lcore_plan.h"

namespace warpline {

// What the commands that drive ports have in common.

/// Whether the user set it: by a flag, the environment or a file. `setting` is named as in the file, "forward.ctas".
[[nodiscard]] bool is_given(const config::LoadedConfig& loaded, std::string_view setting);

/// The part of a report that every run has: what was asked, how long it took, its rate, its ports, cores and notes.
[[nodiscard]] report::RunReport report_of(const config::LoadedConfig& loaded, const report::LiveResult& live,
                                          const runtime::LcorePlan& plan, const runtime::Eal& eal,
                                          std::span<const port::Port> ports);

/// What recycling could not do, each one line: that it does what the ports let it goes without saying, unless somebody
/// asked for it.
[[nodiscard]] std::vector<std::string> recycling_notes(const config::LoadedConfig& loaded,
                                                       const memory::Recycling& recycling);

/// Adds what came of recycling on `ports`. `report` has its totals.
void add_recycling(report::RunReport& report, const config::LoadedConfig& loaded, const memory::Recycling& recycling,
                   std::span<const port::Port> ports);

}  // namespace warpline
