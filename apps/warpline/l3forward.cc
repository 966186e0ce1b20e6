// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "frame/forward_frame.h"
#include "warpline/forward/planned_ports.h"
#include "warpline/report/live.h"
#include "warpline/report/route_totals.h"
#include "warpline/report/run_end.h"
#include "warpline/report/run_metrics.h"
#include "warpline/route/route_file.h"
#include "warpline/router/route_layout.h"
#include "warpline/router/router.h"
#include "warpline/runtime/stop.h"
#include "warpline/runtime/workers.h"

namespace warpline {
namespace {

/// One `l3forward` run, from the command line to the report. Members are destroyed in reverse: lcores end before the
/// stages that they run, the router's tables go before the ports.
class L3ForwardRun : PathsFrame {
 public:
  explicit L3ForwardRun(const config::LoadedConfig& loaded) : PathsFrame(loaded) {}
  L3ForwardRun(const L3ForwardRun&) = delete;
  L3ForwardRun& operator=(const L3ForwardRun&) = delete;
  /// Workers that were launched before an error are ended.
  ~L3ForwardRun() {
    begin_end();
    if (router_) router_->stop();
    workers_.reset();
    finish_captures();  // before the router's paths are gone
    if (planned_ && planned_->opened()) opened_ports().stop();
    door_.reset();
    capture_.reset();
    taps_.reset();
  }

  Result<int> run() {
    WARPLINE_TRY(const route::RouteSet routes, read_routes());
    WARPLINE_TRY(planned_, forward::PlannedPorts::plan(config_.datapath(), config_.runtime, router::lay_out_routing));
    config_.run.packets = planned_->settings().packets;
    lcores_ = planned_->lcores();
    WARPLINE_CHECK(planned_->open({}, router::route_memory(config_.l3forward.lookup, routes)));
    eal_.emplace(planned_->take_eal());
    announce(ports(), &opened_ports().recycling());
    WARPLINE_TRY(router_, router::Router::create(config_.datapath(), config_.l3forward, planned_->layout(), lcores_,
                                                 route_ports(), routes));
    router_->recycle_with(opened_ports().recycling());
    WARPLINE_CHECK(open_captures(ports(), router_->paths(), router_->turns()));
    reload_by([this](const config::Config& next) { return take_over(next); });
    WARPLINE_CHECK(answer_metrics([this](metrics::Snapshot& snapshot) {
      report::add(snapshot, report::totals_of(*router_));
      report::add(snapshot, report::routing_of(*router_));
      report::add(snapshot, ports());
      report::add(snapshot, router_->paths(), ports());
      if (capture_) report::add(snapshot, capture_->totals());
    }));
    announce_ports(opened_ports(), router_->paths());
    WARPLINE_CHECK(launch(workers_, [this](std::size_t role) { router_->run(role); }));
    if (capture_) capture_->start();
    const report::LiveResult live = supervise();
    workers_->wait();
    finish_captures();
    return report(live);
  }

 private:
  [[nodiscard]] forward::ForwardPorts& opened_ports() { return planned_->ports(); }
  [[nodiscard]] const forward::ForwardPorts& opened_ports() const { return planned_->ports(); }
  [[nodiscard]] const std::vector<port::Port>& ports() const { return opened_ports().ports(); }

  [[nodiscard]] Result<route::RouteSet> read_routes() const {
    const runtime::SetupStep step("reading the routes");
    std::vector<route::RouterPort> own;
    for (const port::PortSettings& port : config_.ports)
      own.push_back({.mac = {}, .mtu = port.mtu, .addresses = port.addresses});
    return route::read_routes(config_.l3forward.routes, own, config_.l3forward.lookup == router::LookupKind::exact);
  }

  [[nodiscard]] std::vector<router::RoutePort> route_ports() const {
    std::vector<router::RoutePort> routed;
    for (std::size_t i = 0; i < ports().size(); ++i) {
      const port::Port& port = ports()[i];
      routed.push_back({port.id(),
                        {.mac = port.mac(), .mtu = port.setup().mtu, .addresses = config_.ports[i].addresses},
                        &opened_ports().sending_pool(i),
                        port.watches()});
    }
    return routed;
  }

  report::LiveResult supervise() {
    const auto done = [this] {
      tend();
      router_->tend();
      if (planned_->used_up(router_->received())) router_->stop();
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

  Result<std::string> take_over(const config::Config& next) {
    WARPLINE_TRY(NextCapture capture, open_next_capture(next));
    Result<void> result = router_->reload(next.l3forward.routes);
    if (result) {
      WARPLINE_CHECK(begin_next_capture(std::move(capture), next.capture));
      return fmt::format("read {} routes again", router_->routes());
    }
    Error error = std::move(result).error();
    error.what = "the routes stay as they were: " + error.what;
    return error;
  }

  int report(const report::LiveResult& live) {
    report::RunReport report = begin_report(live, ports());
    report.totals = report::totals_of(*router_);
    report.routing = report::routing_of(*router_);
    if (capture_) report.add_capture(capture_->totals());
    add_recycling(report, opened_ports().recycling(), ports());
    print(report);
    return report::exit_code(report, live.interrupted);
  }

  std::unique_ptr<forward::PlannedPorts> planned_;
  std::unique_ptr<router::Router> router_;
  std::optional<runtime::Workers> workers_;
};

}  // namespace

Result<int> run_l3forward(const config::LoadedConfig& loaded) { return L3ForwardRun(loaded).run(); }

}  // namespace warpline
