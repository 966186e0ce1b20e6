// SPDX-License-Identifier: Apache-2.0
#include "warpline/forward/forward_run.h"

#include <chrono>
#include <thread>
#include <utility>

#include "warpline/datapath/path_totals.h"
#include "warpline/machine/topology.h"

namespace warpline::forward {

Result<std::unique_ptr<ForwardRun>> ForwardRun::start(const datapath::DatapathSettings& settings,
                                                      const runtime::RuntimeSettings& runtime,
                                                      const StageMaker& make_stages) {
  if (settings.forward.loopback || settings.ports.empty()) {
    return usage_error("forwarding", "there are no ports", "name them in DatapathSettings::ports");
  }
  std::unique_ptr<ForwardRun> run(new ForwardRun);
  run->settings_ = settings;
  WARPLINE_TRY(run->inputs_, datapath::look_at_inputs(settings.ports));
  run->settings_.packets = run->inputs_.bound(settings.packets);
  WARPLINE_TRY(const machine::Topology topology, machine::Topology::of_machine());
  run->layout_ = datapath::lay_out_forward(settings, run->inputs_.nodes, topology.cpus.size());
  WARPLINE_TRY(run->plan_, runtime::place_workers(runtime, topology, run->layout_.requests));
  run->ports_.emplace(run->settings_, run->layout_, 0, std::uint16_t{0});
  WARPLINE_TRY(runtime::Eal eal,
               runtime::Eal::start(runtime, run->plan_, run->inputs_.specs, run->ports_->host_memory()));
  run->eal_.emplace(std::move(eal));
  WARPLINE_CHECK(run->ports_->open());
  WARPLINE_TRY(run->forwarder_,
               Forwarder::create(run->settings_, run->layout_, run->plan_, run->ports_->near(), make_stages));
  run->forwarder_->recycle_with(run->ports_->recycling());
  WARPLINE_CHECK(run->forwarder_->prepare());
  WARPLINE_CHECK(run->ports_->start_copies());
  WARPLINE_CHECK(run->forwarder_->start());
  run->workers_.emplace(run->plan_);
  for (std::size_t role = 0; role < run->layout_.roles.size(); ++role) {
    if (run->layout_.roles[role].kind == datapath::RoleKind::engine) continue;
    WARPLINE_CHECK(run->workers_->launch(role, [forwarder = run->forwarder_.get(), role] { forwarder->run(role); }));
  }
  return run;
}

ForwardRun::~ForwardRun() {
  if (forwarder_) forwarder_->stop();
  workers_.reset();
  if (forwarder_) forwarder_->finish();
  if (ports_) ports_->stop();
  runtime::Eal::begin_end();
}

Result<void> ForwardRun::run(const std::atomic<bool>& stop) {
  while (workers_->running()) {
    const bool all = inputs_.used_up(settings_.packets, forwarder_->received(), ports_->ports());
    const bool failed =
        settings_.forward.on_gpu_failure == datapath::GpuFailure::stop && forwarder_->failure().has_value();
    if (failed) forwarder_->abandon();
    if (all || failed || stop.load(std::memory_order_relaxed)) forwarder_->stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  workers_->wait();
  forwarder_->finish();
  if (std::optional<Error> failure = forwarder_->failure()) return *std::move(failure);
  return {};
}

RunTotals ForwardRun::totals() const {
  datapath::PathTotals sum;
  for (const auto& path : forwarder_->paths()) sum.add(*path);
  return sum.totals;
}

}  // namespace warpline::forward
