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
                                                      const StageMaker& make_stages, FarSide* far) {
  const bool loopback = settings.forward.loopback;
  if (loopback ? far == nullptr : settings.ports.empty()) {
    return usage_error("forwarding", "there are no ports", "name them in DatapathSettings::ports");
  }
  std::unique_ptr<ForwardRun> run(new ForwardRun);
  run->settings_ = settings;
  run->far_ = loopback ? far : nullptr;
  WARPLINE_TRY(run->inputs_, datapath::look_at_inputs(settings.ports, settings.pool.memory));
  run->settings_.packets = run->inputs_.bound(settings.packets);
  WARPLINE_TRY(const machine::Topology topology, machine::Topology::of_machine());
  run->layout_ = datapath::lay_out_forward(settings, settings.near_nodes(run->inputs_.nodes), topology.cpus.size());
  run->ports_.emplace(run->settings_, run->layout_,
                      loopback ? FarTraffic{.max_frame = far->max_frame(), .burst = far->burst()} : FarTraffic{});
  WARPLINE_TRY(runtime::Eal eal,
               runtime::Eal::start(runtime, run->layout_.requests, run->inputs_.specs, run->ports_->host_memory()));
  run->eal_.emplace(std::move(eal));
  WARPLINE_CHECK(run->ports_->open());
  WARPLINE_TRY(run->forwarder_,
               Forwarder::create(run->settings_, run->layout_, run->plan(), run->ports_->near(), make_stages));
  run->forwarder_->recycle_with(run->ports_->recycling());
  if (loopback) WARPLINE_CHECK(far->prepare(*run->ports_, *run->forwarder_, run->layout_, run->plan()));
  WARPLINE_CHECK(run->forwarder_->prepare());
  WARPLINE_CHECK(run->ports_->start_copies());
  WARPLINE_CHECK(run->forwarder_->start());
  WARPLINE_CHECK(run->launch());
  return run;
}

Result<void> ForwardRun::launch() {
  workers_.emplace(plan());
  for (std::size_t role = 0; role < layout_.roles.size(); ++role) {
    switch (layout_.roles[role].kind) {
      case datapath::RoleKind::engine:
        break;
      case datapath::RoleKind::far_side:
        WARPLINE_CHECK(workers_->launch(role, [far = far_, role] { far->run(role); }));
        break;
      case datapath::RoleKind::run_to_completion:
      case datapath::RoleKind::receive:
      case datapath::RoleKind::transmit:
        WARPLINE_CHECK(workers_->launch(role, [forwarder = forwarder_.get(), role] { forwarder->run(role); }));
        break;
    }
  }
  return {};
}

ForwardRun::~ForwardRun() {
  if (far_ != nullptr) far_->stop(true);
  if (forwarder_) forwarder_->stop();
  workers_.reset();
  if (forwarder_) forwarder_->finish();
  if (ports_) ports_->stop();
  runtime::Eal::begin_end();
}

bool ForwardRun::look() {
  if (!workers_->running()) return false;
  const bool all =
      far_ != nullptr ? far_->done() : inputs_.used_up(settings_.packets, forwarder_->received(), ports_->ports());
  const bool failed =
      settings_.forward.on_gpu_failure == datapath::GpuFailure::stop && forwarder_->failure().has_value();
  if (failed) {
    stop(true);
    forwarder_->abandon();
  }
  if (all || failed) forwarder_->stop();
  return true;
}

void ForwardRun::stop(bool hurried) { far_ != nullptr ? far_->stop(hurried) : forwarder_->stop(); }

Result<void> ForwardRun::finish() {
  workers_->wait();
  forwarder_->finish();
  if (std::optional<Error> failure = forwarder_->failure()) return *std::move(failure);
  return {};
}

Result<void> ForwardRun::run(const std::atomic<bool>& stop) {
  while (look()) {
    if (stop.load(std::memory_order_relaxed)) this->stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return finish();
}

RunTotals ForwardRun::totals() const {
  datapath::PathTotals sum;
  for (const auto& path : forwarder_->paths()) sum.add(*path);
  return sum.totals;
}

}  // namespace warpline::forward
