// SPDX-License-Identifier: Apache-2.0
#include "warpline/forward/forward_run.h"

#include <chrono>
#include <thread>
#include <utility>

#include "warpline/datapath/path_totals.h"
#include "warpline/port/link_wait.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/runtime/stop.h"

namespace warpline::forward {

Result<std::unique_ptr<ForwardRun>> ForwardRun::start(const datapath::DatapathSettings& settings,
                                                      const runtime::RuntimeSettings& runtime,
                                                      const StageMaker& make_stages,
                                                      std::optional<LoopbackSettings> loopback) {
  WARPLINE_TRY(std::unique_ptr<ForwardRun> run, plan(settings, runtime, std::move(loopback)));
  WARPLINE_CHECK(run->open());
  WARPLINE_CHECK(run->prepare(make_stages));
  WARPLINE_CHECK(run->start_engines());
  WARPLINE_CHECK(run->launch());
  return run;
}

Result<std::unique_ptr<ForwardRun>> ForwardRun::plan(const datapath::DatapathSettings& settings,
                                                     const runtime::RuntimeSettings& runtime,
                                                     std::optional<LoopbackSettings> loopback) {
  if (!settings.forward.loopback) loopback.reset();
  if (settings.forward.loopback ? !loopback : settings.ports.empty()) {
    return usage_error("forwarding", "there are no ports", "name them in DatapathSettings::ports");
  }
  std::unique_ptr<ForwardRun> run(new ForwardRun(std::move(loopback)));
  WARPLINE_TRY(run->planned_, PlannedPorts::plan(settings, runtime, datapath::lay_out_forward));
  return run;
}

Result<void> ForwardRun::open() { return planned_->open(far_ ? far_->far_traffic() : FarTraffic{}); }

Result<void> ForwardRun::prepare(const StageMaker& make_stages) {
  down_links_ = port::wait_for_links(ports(), runtime::StopOnSignal::requested());
  ForwardPorts& opened = opened_ports();
  WARPLINE_TRY(forwarder_, Forwarder::create(settings(), layout(), plan(), opened.near(), make_stages));
  forwarder_->recycle_with(opened.recycling());
  if (far_) WARPLINE_CHECK(far_->prepare(settings(), opened, *forwarder_, layout(), plan()));
  return forwarder_->prepare();
}

Result<void> ForwardRun::start_engines() {
  {
    const runtime::SetupStep step("starting the GPU's copies");
    WARPLINE_CHECK(opened_ports().start_copies());
  }
  return forwarder_->start();
}

Result<void> ForwardRun::launch() {
  workers_.emplace(plan());
  for (std::size_t role = 0; role < layout().roles.size(); ++role) {
    switch (layout().roles[role].kind) {
      case datapath::RoleKind::engine:
        break;
      case datapath::RoleKind::far_side:
        WARPLINE_CHECK(workers_->launch(role, [far = &*far_, role] { far->run(role); }));
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

bool ForwardRun::look() {
  if (!workers_->running()) return false;
  const bool all = far_ ? far_->done() : planned_->used_up(forwarder_->received());
  const bool failed =
      settings().forward.on_gpu_failure == datapath::GpuFailure::stop && forwarder_->failure().has_value();
  if (failed) {
    stop(true);
    forwarder_->abandon();
  }
  if (all || failed) forwarder_->stop();
  return true;
}

void ForwardRun::stop(bool hurried) { far_ ? far_->stop(hurried) : forwarder_->stop(); }

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

void ForwardRun::end() {
  if (!planned_ || std::exchange(ended_, true)) return;
  if (far_) far_->stop(true);
  if (forwarder_) forwarder_->stop();
  workers_.reset();
  if (forwarder_) forwarder_->finish();
  if (planned_->opened()) opened_ports().stop();
  runtime::Eal::begin_end();
}

RunTotals ForwardRun::totals() const {
  datapath::PathTotals sum;
  for (const auto& path : forwarder_->paths()) sum.add(*path);
  return sum.totals;
}

}  // namespace warpline::forward
