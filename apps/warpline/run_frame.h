// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/load.h"
#include "warpline/base/result.h"
#include "warpline/machine/topology.h"
#include "warpline/memory/recycle_setup.h"
#include "warpline/port/port.h"
#include "warpline/report/live.h"
#include "warpline/report/report.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/lcore_plan.h"

namespace warpline {

// What the commands that drive ports have in common.

/// What can be known of the ports before DPDK starts.
struct RunInputs {
  std::vector<std::string> specs;
  std::vector<int> nodes;  ///< NUMA node of each port
  bool finite = false;     ///< all ports replay files: what is lost never comes again
};

/// Looks at the ports of `config`, and bounds config.run.packets where no more can ever come. Wrong specs and files are
/// errors.
[[nodiscard]] Result<RunInputs> look_at_inputs(config::Config& config);

/// All that may or can come is among the `received` packets, or was lost by a device.
[[nodiscard]] bool input_used_up(const config::Config& config, bool finite, std::uint64_t received,
                                 std::span<const port::Port> ports);

/// Places the workers on this machine's cores, as far as --lcores and --share-cores let it.
[[nodiscard]] Result<runtime::LcorePlan> place_workers(const runtime::RuntimeSettings& runtime,
                                                       const machine::Topology& topology,
                                                       const std::vector<runtime::WorkerRequest>& requests);

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
