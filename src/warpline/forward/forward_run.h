// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/statistics/run_totals.h"
#include "warpline/datapath/forward_settings.h"
#include "warpline/datapath/layout.h"
#include "warpline/forward/forward_ports.h"
#include "warpline/forward/forwarder.h"
#include "warpline/forward/loopback_traffic.h"
#include "warpline/forward/make_stages.h"
#include "warpline/forward/planned_ports.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/runtime/runtime_settings.h"
#include "warpline/runtime/workers.h"

namespace warpline::forward {

/// A Forwarder with all that it needs: cores are planned, DPDK is started, ports are opened, links are awaited, loops
/// are launched. One a process, since DPDK is, or with RuntimeSettings::keep one at a time. One thread, which then is
/// DPDK's control thread, makes all calls but totals().
class ForwardRun {
 public:
  /// Forwards between `settings.ports` from here on, with `make_stages` as Forwarder::create() takes it. Usage and
  /// environment errors say what to change. Without `loopback`, whose frames a run with settings.forward.loopback
  /// receives, such a run is a usage error.
  [[nodiscard]] static Result<std::unique_ptr<ForwardRun>> start(const datapath::DatapathSettings& settings,
                                                                 const runtime::RuntimeSettings& runtime = {},
                                                                 const StageMaker& make_stages = nullptr,
                                                                 std::optional<LoopbackSettings> loopback = {});
  ForwardRun(const ForwardRun&) = delete;
  ForwardRun& operator=(const ForwardRun&) = delete;
  /// Stops as run() does.
  ~ForwardRun() { end(); }

  // The parts of start(), for who has something to do between them, in this order. After an error there is nothing to
  // do but destroy the run.

  /// Decides, and refuses, all that can be before DPDK starts.
  [[nodiscard]] static Result<std::unique_ptr<ForwardRun>> plan(const datapath::DatapathSettings& settings,
                                                                const runtime::RuntimeSettings& runtime,
                                                                std::optional<LoopbackSettings> loopback);
  /// Starts DPDK and opens the ports.
  [[nodiscard]] Result<void> open();
  /// Waits for links, and makes the forwarder and the far side of a loopback.
  [[nodiscard]] Result<void> prepare(const StageMaker& make_stages);
  /// Starts what copies for software NICs, and the engines.
  [[nodiscard]] Result<void> start_engines();
  /// Starts the loops on their lcores.
  [[nodiscard]] Result<void> launch();

  /// Returns once `stop` is set, settings.packets have been received, ports that all replay files have no more, or an
  /// engine has failed, and what was in hand has left. The error is the engine's.
  [[nodiscard]] Result<void> run(const std::atomic<bool>& stop);

  // The parts of run(), for a control loop of one's own: look() now and then until it is false, then finish().

  /// Does what a control loop does at each look. Returns false once all workers have ended.
  [[nodiscard]] bool look();
  /// Has the run receive nothing more; of a loopback after what is on its way, if `hurried` not for long.
  void stop(bool hurried = false);
  /// Waits for the workers and ends the engines. The error is theirs.
  [[nodiscard]] Result<void> finish();

  /// Ends a run at any point of it, before its objects go: workers that were launched before an error, too. All kernels
  /// end before any memory is given back, which waits for those that run on the same GPU: the engines', and those that
  /// copy for software NICs. More than once does no more.
  void end();

  /// What all ports received and sent, and what was dropped why. Any thread; exact after run().
  [[nodiscard]] RunTotals totals() const;

  /// As given, but that `packets` is no more than the ports have to give.
  [[nodiscard]] const datapath::DatapathSettings& settings() const { return planned_->settings(); }
  [[nodiscard]] const datapath::ForwardLayout& layout() const { return planned_->layout(); }
  [[nodiscard]] const runtime::LcorePlan& plan() const { return planned_->lcores(); }

  // After open().
  /// The ports; of a loopback the near one, then the far one.
  [[nodiscard]] const std::vector<port::Port>& ports() const { return planned_->ports().ports(); }
  /// With their pools, and how sent buffers come back.
  [[nodiscard]] ForwardPorts& opened_ports() { return planned_->ports(); }
  [[nodiscard]] const runtime::Eal& eal() const { return planned_->eal(); }
  /// Hands DPDK's environment over to an owner that outlives the run.
  [[nodiscard]] runtime::Eal take_eal() { return planned_->take_eal(); }

  // After prepare().
  [[nodiscard]] Forwarder& forwarder() { return *forwarder_; }
  [[nodiscard]] const Forwarder& forwarder() const { return *forwarder_; }
  /// Names of the ports whose links were down when they were awaited.
  [[nodiscard]] const std::vector<std::string>& down_links() const { return down_links_; }
  /// The far side of a loopback; null without one.
  [[nodiscard]] LoopbackTraffic* far() { return far_ ? &*far_ : nullptr; }
  [[nodiscard]] const LoopbackTraffic* far() const { return far_ ? &*far_ : nullptr; }

 private:
  explicit ForwardRun(std::optional<LoopbackSettings> loopback) {
    if (loopback) far_.emplace(*std::move(loopback));
  }

  // Destroyed in reverse: lcores end before the stages that they run, ports close before their pools, the EAL goes
  // last.
  std::unique_ptr<PlannedPorts> planned_;
  std::vector<std::string> down_links_;
  std::unique_ptr<Forwarder> forwarder_;
  std::optional<LoopbackTraffic> far_;
  std::optional<runtime::Workers> workers_;
  bool ended_ = false;
};

}  // namespace warpline::forward
