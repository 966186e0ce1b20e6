// SPDX-License-Identifier: Apache-2.0
#include "run_frame.h"

#include <algorithm>
#include <utility>

#include "warpline/base/give_way.h"
#include "warpline/report/recycle_totals.h"
#include "warpline/report/run_end.h"
#include "warpline/runtime/pcap_file.h"
#include "warpline/runtime/port_spec.h"

namespace warpline {
namespace {

/// Packets that a port can ever receive because it replays a file once; 0 for all other ports.
Result<std::uint64_t> recorded_packets(const std::string& text) {
  WARPLINE_TRY(const runtime::PortSpec spec, runtime::parse_port_spec(text));
  const auto file = spec.arguments.find("rx_pcap");
  if (spec.driver != "net_pcap" || file == spec.arguments.end()) return std::uint64_t{0};
  const auto endless = spec.arguments.find("infinite_rx");
  if (endless != spec.arguments.end() && endless->second != "0") return std::uint64_t{0};
  WARPLINE_TRY(const runtime::PcapFacts facts, runtime::check_pcap(file->second));
  return facts.packets;
}

bool asked_to_recycle(const config::LoadedConfig& loaded) {
  return std::ranges::any_of(loaded.settings, [](const config::Setting& setting) {
    return setting.name == "forward.recycle" && setting.origin.source != config::Source::built_in;
  });
}

}  // namespace

Result<RunInputs> look_at_inputs(config::Config& config) {
  RunInputs inputs{.specs = {}, .nodes = {}, .finite = !config.ports.empty()};
  std::uint64_t recorded = 0;
  for (const port::PortSettings& port : config.ports) {
    WARPLINE_CHECK(runtime::check_port_spec(port.spec));
    WARPLINE_TRY(const std::uint64_t packets, recorded_packets(port.spec));
    inputs.finite = inputs.finite && packets != 0;
    recorded += packets;
    inputs.specs.push_back(port.spec);
    inputs.nodes.push_back(runtime::port_node(port.spec));
  }
  if (inputs.finite && (config.run.packets == 0 || config.run.packets > recorded)) config.run.packets = recorded;
  return inputs;
}

bool input_used_up(const config::Config& config, bool finite, std::uint64_t received,
                   std::span<const port::Port> ports) {
  if (config.run.packets == 0) return false;
  if (received < config.run.packets && finite) {
    for (const port::Port& port : ports) {
      const port::PortCounters counters = port.counters();
      received += counters.rx_errors + counters.rx_no_mbuf;
    }
  }
  return received >= config.run.packets;
}

Result<runtime::LcorePlan> place_workers(const runtime::RuntimeSettings& runtime, const machine::Topology& topology,
                                         const std::vector<runtime::WorkerRequest>& requests) {
  return runtime::plan_lcores(topology, requests, {runtime.lcores, runtime.share_cores, is_real_time()});
}

report::RunReport report_of(const config::LoadedConfig& loaded, const report::LiveResult& live,
                            const runtime::LcorePlan& plan, const runtime::Eal& eal,
                            std::span<const port::Port> ports) {
  report::RunReport report;
  report.command = loaded.config.command;
  report.config = loaded.to_json();
  report.duration_s = live.duration_s;
  report.rate = live.rate;
  for (const port::Port& port : ports) report::add_port(report, port);
  report::add_plan(report, plan);
  report.notes = report::notes_of(plan, eal, ports);
  return report;
}

std::vector<std::string> recycling_notes(const config::LoadedConfig& loaded, const memory::Recycling& recycling) {
  return asked_to_recycle(loaded) ? recycling.notes : std::vector<std::string>{};
}

void add_recycling(report::RunReport& report, const config::LoadedConfig& loaded, const memory::Recycling& recycling,
                   std::span<const port::Port> ports) {
  const memory::RecycleWay way = loaded.config.forward.recycle;
  report.recycle = report::recycle_totals(way, recycling, ports);
  for (const std::string& note : recycling_notes(loaded, recycling)) report.notes.push_back(note);
  auto nothing = report::nothing_recycled(way, *report.recycle, report.totals.rx.packets);
  if (nothing && asked_to_recycle(loaded)) report.notes.push_back(*std::move(nothing));
}

}  // namespace warpline
