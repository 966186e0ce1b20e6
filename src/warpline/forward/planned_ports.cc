// SPDX-License-Identifier: Apache-2.0
#include "warpline/forward/planned_ports.h"

#include "warpline/machine/topology.h"

namespace warpline::forward {

Result<std::unique_ptr<PlannedPorts>> PlannedPorts::plan(const datapath::DatapathSettings& settings,
                                                         const runtime::RuntimeSettings& runtime, LayOut& lay_out) {
  std::unique_ptr<PlannedPorts> ports(new PlannedPorts(settings, runtime));
  WARPLINE_TRY(ports->inputs_, datapath::look_at_inputs(settings.ports, settings.pool.memory));
  ports->settings_.packets = ports->inputs_.bound(settings.packets);
  WARPLINE_TRY(const machine::Topology topology, machine::Topology::of_machine());
  ports->layout_ = lay_out(settings, settings.near_nodes(ports->inputs_.nodes), topology.cpus.size());
  WARPLINE_TRY(ports->lcores_, runtime::place_workers(runtime, ports->layout_.requests));
  return ports;
}

Result<void> PlannedPorts::open(const FarTraffic& far_traffic, Bytes beside) {
  ports_.emplace(settings_, layout_, far_traffic);
  const Bytes memory{ports_->host_memory().value + beside.value};
  WARPLINE_TRY(runtime::Eal eal, runtime::Eal::start_planned(runtime_, lcores_, inputs_.specs, memory));
  eal_.emplace(std::move(eal));
  return ports_->open();
}

}  // namespace warpline::forward
