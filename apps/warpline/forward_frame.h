// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "config/config.h"
#include "warpline/base/result.h"
#include "warpline/datapath/layout.h"
#include "warpline/datapath/run_inputs.h"
#include "warpline/forward/forward_ports.h"
#include "warpline/forward/forwarder.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/runtime/workers.h"
#include "warpline/traffic/traffic_worker.h"

namespace warpline {

// What the commands that run a forwarder have in common, in the order of a run. The control thread calls all of it.

/// `ForwardPlan` is what is decided, and refused, before DPDK starts.
struct ForwardPlan {
  datapath::RunInputs inputs;
  datapath::ForwardLayout layout;
  runtime::LcorePlan lcores;
};

/// Looks at the ports and the machine and places the workers. `config.run.packets` becomes the number after which the
/// ports have nothing more to give, if that is less.
[[nodiscard]] Result<ForwardPlan> plan_forwarding(config::Config& config);

/// `far_options` returns what the far side of a loopback is to do: send back and forth what the ports have room for.
[[nodiscard]] traffic::TrafficGroup::Options far_options(const config::Config& config,
                                                         const forward::ForwardPorts& ports);

using FarWorkers = std::vector<std::unique_ptr<traffic::TrafficWorker>>;
/// `far_workers` returns the workers of a loopback's far side, by their queue. They refer to the group.
[[nodiscard]] FarWorkers far_workers(traffic::TrafficGroup& far, const ForwardPlan& plan,
                                     const forward::ForwardPorts& ports);

/// Starts each role of the layout on its lcore: the forwarder's, and the far side's if there is one.
[[nodiscard]] Result<void> launch_roles(const ForwardPlan& plan, forward::Forwarder& forwarder, const FarWorkers& far,
                                        runtime::Workers& workers);

/// Stops the forwarder when all that the run is to receive is there: `packets` of them, or what the far side has sent.
void stop_if_done(const ForwardPlan& plan, std::uint64_t packets, const traffic::TrafficGroup* far,
                  forward::Forwarder& forwarder, std::span<const port::Port> ports);

/// Ends a run whose engine gives nothing back any more: what is in it stays there. `far` may be null.
void give_up(traffic::TrafficGroup* far, forward::Forwarder& forwarder);

/// Ends what was begun of a run, at any point of it: workers that were launched before an error too. All kernels end
/// before any memory is given back, which waits for those that run on the same GPU: the engines', and those that copy
/// for software NICs. `far` and `forwarder` may be null.
void wind_up(traffic::TrafficGroup* far, forward::Forwarder* forwarder, std::optional<runtime::Workers>& workers,
             std::optional<forward::ForwardPorts>& ports);

}  // namespace warpline
