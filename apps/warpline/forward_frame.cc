// SPDX-License-Identifier: Apache-2.0
#include "forward_frame.h"

#include "warpline/machine/topology.h"

namespace warpline {

Result<ForwardPlan> plan_forwarding(config::Config& config) {
  ForwardPlan plan;
  std::vector<int> nodes;
  if (config.forward.loopback) nodes = {runtime::kAnyNode};
  WARPLINE_TRY(plan.inputs, datapath::look_at_inputs(config.ports));
  config.run.packets = plan.inputs.bound(config.run.packets);
  nodes.insert(nodes.end(), plan.inputs.nodes.begin(), plan.inputs.nodes.end());
  WARPLINE_TRY(const machine::Topology topology, machine::Topology::of_machine());
  plan.layout = datapath::lay_out_forward(config.datapath(), nodes, topology.cpus.size());
  WARPLINE_TRY(plan.lcores, runtime::place_workers(config.runtime, topology, plan.layout.requests));
  return plan;
}

traffic::TrafficGroup::Options far_options(const config::Config& config, const forward::ForwardPorts& ports) {
  return {.workers = config.forward.pipelines,
          .macs = traffic::MacRule::unchanged,
          .packets = config.run.packets,
          .warmup = config.run.warmup,
          .window = ports.window(),
          .burst = config.traffic.burst,
          .rate = traffic::share_of(config.traffic.rate, config.forward.pipelines),
          .drain = config.traffic.drain};
}

FarWorkers far_workers(traffic::TrafficGroup& far, const ForwardPlan& plan, const forward::ForwardPorts& ports) {
  FarWorkers workers;
  for (std::size_t role = 0; role < plan.layout.roles.size(); ++role) {
    if (plan.layout.roles[role].kind != datapath::RoleKind::far_side) continue;
    const std::uint16_t queue = plan.layout.roles[role].paths.front();
    workers.push_back(std::make_unique<traffic::TrafficWorker>(
        far,
        traffic::TrafficWorker::Place{.number = queue,
                                      .port = ports.ports()[1].id(),
                                      .queue = queue,
                                      .yields = plan.lcores.workers[role].gives_way},
        ports.sending_pool(1)));
  }
  return workers;
}

Result<void> launch_roles(const ForwardPlan& plan, forward::Forwarder& forwarder, const FarWorkers& far,
                          runtime::Workers& workers) {
  for (std::size_t role = 0; role < plan.layout.roles.size(); ++role) {
    if (plan.layout.roles[role].kind == datapath::RoleKind::engine) continue;
    if (plan.layout.roles[role].kind == datapath::RoleKind::far_side) {
      traffic::TrafficWorker& worker = *far[plan.layout.roles[role].paths.front()];
      WARPLINE_CHECK(workers.launch(role, [&worker] { worker.run(); }));
    } else {
      WARPLINE_CHECK(workers.launch(role, [&forwarder, role] { forwarder.run(role); }));
    }
  }
  return {};
}

void stop_if_done(const ForwardPlan& plan, std::uint64_t packets, const traffic::TrafficGroup* far,
                  forward::Forwarder& forwarder, std::span<const port::Port> ports) {
  const bool done = far != nullptr ? far->done() : plan.inputs.used_up(packets, forwarder.received(), ports);
  if (done) forwarder.stop();
}

void give_up(traffic::TrafficGroup* far, forward::Forwarder& forwarder) {
  if (far != nullptr) far->stop();
  forwarder.stop();
  forwarder.abandon();
}

void wind_up(traffic::TrafficGroup* far, forward::Forwarder* forwarder, std::optional<runtime::Workers>& workers,
             std::optional<forward::ForwardPorts>& ports) {
  if (far != nullptr) far->stop();
  if (forwarder != nullptr) forwarder->stop();
  workers.reset();
  if (forwarder != nullptr) forwarder->finish();
  if (ports) ports->stop();
}

}  // namespace warpline
