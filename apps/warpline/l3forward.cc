// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <optional>
#include <vector>

#include "commands.h"
#include "run_frame.h"
#include "warpline/base/give_way.h"
#include "warpline/datapath/run_inputs.h"
#include "warpline/forward/forward_ports.h"
#include "warpline/report/live.h"
#include "warpline/report/route_totals.h"
#include "warpline/report/run_end.h"
#include "warpline/route/route_file.h"
#include "warpline/router/route_layout.h"
#include "warpline/router/router.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/reload_signal.h"
#include "warpline/runtime/stop.h"
#include "warpline/runtime/workers.h"

namespace warpline {
namespace {

/// One `l3forward` run, from the command line to the report. Members are destroyed in reverse: lcores end before the
/// stages that they run, the router's tables go before the EAL.
class L3ForwardRun {
 public:
  explicit L3ForwardRun(const config::LoadedConfig& loaded) : loaded_(loaded), config_(loaded.config) {}
  L3ForwardRun(const L3ForwardRun&) = delete;
  L3ForwardRun& operator=(const L3ForwardRun&) = delete;
  /// Workers that were launched before an error are ended.
  ~L3ForwardRun() {
    if (router_) router_->stop();
    workers_.reset();
    if (ports_) ports_->stop();
  }

  Result<int> run() {
    WARPLINE_TRY(const route::RouteSet routes, plan());
    ports_.emplace(config_.datapath(), layout_, 0, config_.traffic.burst);
    const Bytes memory{ports_->host_memory().value + router::route_memory(config_.l3forward.lookup, routes).value};
    WARPLINE_TRY(runtime::Eal eal, runtime::Eal::start(config_.runtime, plan_, inputs_.specs, memory));
    eal_.emplace(std::move(eal));
    WARPLINE_CHECK(ports_->open());
    report::announce(report::notes_of(plan_, *eal_, ports_->ports()));
    report::announce(recycling_notes(loaded_, ports_->recycling()));
    link_notes_ = report::await_links(ports_->ports());
    report::announce(link_notes_);
    WARPLINE_TRY(router_,
                 router::Router::create(config_.datapath(), config_.l3forward, layout_, plan_, route_ports(), routes));
    router_->recycle_with(ports_->recycling());
    WARPLINE_CHECK(launch());
    const report::LiveResult live = supervise();
    workers_->wait();
    return report(live);
  }

 private:
  /// All that can be decided, and refused, before DPDK starts: the routes too.
  Result<route::RouteSet> plan() {
    WARPLINE_TRY(inputs_, datapath::look_at_inputs(config_.ports));
    config_.run.packets = inputs_.bound(config_.run.packets);
    std::vector<route::RouterPort> own;
    for (const port::PortSettings& port : config_.ports)
      own.push_back({.mac = {}, .mtu = port.mtu, .addresses = port.addresses});
    WARPLINE_TRY(route::RouteSet routes, route::read_routes(config_.l3forward.routes, own,
                                                            config_.l3forward.lookup == router::LookupKind::exact));
    WARPLINE_TRY(const machine::Topology topology, machine::Topology::of_machine());
    layout_ = router::lay_out_routing(config_.datapath(), inputs_.nodes, topology.cpus.size());
    WARPLINE_TRY(plan_, runtime::place_workers(config_.runtime, topology, layout_.requests));
    return routes;
  }

  [[nodiscard]] std::vector<router::RoutePort> route_ports() const {
    std::vector<router::RoutePort> ports;
    for (std::size_t i = 0; i < ports_->ports().size(); ++i) {
      const port::Port& port = ports_->ports()[i];
      ports.push_back({port.id(),
                       {.mac = port.mac(), .mtu = port.setup().mtu, .addresses = config_.ports[i].addresses},
                       &ports_->sending_pool(i)});
    }
    return ports;
  }

  Result<void> launch() {
    workers_.emplace(plan_);
    started_s_ = report::monotonic_seconds();
    for (std::size_t role = 0; role < layout_.roles.size(); ++role) {
      WARPLINE_CHECK(workers_->launch(role, [this, role] { router_->run(role); }));
    }
    return {};
  }

  report::LiveResult supervise() {
    const auto done = [this] {
      if (runtime::ReloadOnSignal::take()) reload();
      router_->tend();
      if (inputs_.used_up(config_.run.packets, router_->received(), ports_->ports())) router_->stop();
      return !workers_->running();
    };
    return report::run_live(config_.run,
                            {.started_s = started_s_,
                             .sample = [this] { return report::totals_of(*router_); },
                             .progress = [this] { return report::sent_by(*router_); },
                             .done = done,
                             .stop = [this] { router_->stop(); }},
                            runtime::StopOnSignal::requested());
  }

  void reload() {
    const Result<void> result = router_->reload();
    if (result) {
      spdlog::info("read {} routes again", router_->routes());
    } else {
      spdlog::error("the routes stay as they were: {}", result.error().message());
    }
  }

  int report(const report::LiveResult& live) {
    report::RunReport report = report_of(loaded_, live, plan_, *eal_, ports_->ports());
    report.totals = report::totals_of(*router_);
    report.routing = report::routing_of(*router_);
    report.notes.insert(report.notes.end(), link_notes_.begin(), link_notes_.end());
    add_recycling(report, loaded_, ports_->recycling(), ports_->ports());
    report::print(report, config_.run);
    return report::exit_code(report, live.interrupted);
  }

  runtime::StopOnSignal on_signal_;  ///< goes last: an interrupt cuts short neither set-up nor clean-up
  runtime::ReloadOnSignal on_hangup_;
  const config::LoadedConfig& loaded_;
  config::Config config_;
  datapath::RunInputs inputs_;
  datapath::ForwardLayout layout_;
  runtime::LcorePlan plan_;
  std::vector<std::string> link_notes_;  ///< of links that were down when the run began

  std::optional<runtime::Eal> eal_;
  std::optional<forward::ForwardPorts> ports_;
  std::unique_ptr<router::Router> router_;
  std::optional<runtime::Workers> workers_;
  double started_s_ = 0;
};

}  // namespace

Result<int> run_l3forward(const config::LoadedConfig& loaded) { return L3ForwardRun(loaded).run(); }

}  // namespace warpline
