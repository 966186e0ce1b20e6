// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/statistics/run_totals.h"
#include "warpline/datapath/forward_settings.h"
#include "warpline/datapath/layout.h"
#include "warpline/datapath/run_inputs.h"
#include "warpline/forward/far_side.h"
#include "warpline/forward/forward_ports.h"
#include "warpline/forward/forwarder.h"
#include "warpline/forward/make_stages.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/runtime/runtime_settings.h"
#include "warpline/runtime/workers.h"

namespace warpline::forward {

/// A Forwarder with all that it needs: cores are planned, DPDK is started, ports are opened, loops are launched. One a
/// process, since DPDK is, or with RuntimeSettings::keep one at a time. One thread, which then is DPDK's control
/// thread, makes all calls but totals().
class ForwardRun {
 public:
  /// Forwards between `settings.ports` from here on, with `make_stages` as Forwarder::create() takes it. Usage and
  /// environment errors say what to change. A loopback needs a `far` side, which outlives the run; without one it is a
  /// usage error.
  [[nodiscard]] static Result<std::unique_ptr<ForwardRun>> start(const datapath::DatapathSettings& settings,
                                                                 const runtime::RuntimeSettings& runtime = {},
                                                                 const StageMaker& make_stages = nullptr,
                                                                 FarSide* far = nullptr);
  ForwardRun(const ForwardRun&) = delete;
  ForwardRun& operator=(const ForwardRun&) = delete;
  /// Stops as run() does.
  ~ForwardRun();

  /// Returns once `stop` is set, settings.packets have been received, ports that all replay files have no more, or an
  /// engine has failed, and what was in hand has left. The error is the engine's.
  [[nodiscard]] Result<void> run(const std::atomic<bool>& stop);

  // The parts of run(), for a control loop of one's own: look() now and then until it is false, then finish().

  /// Does what a control loop does at each look. Returns false once all workers have ended.
  [[nodiscard]] bool look();
  /// Has the run receive nothing more; of a loopback after what is on its way, if `hurried` not for long.
  void stop(bool hurried = false);
  /// Ends the engines. The error is theirs.
  [[nodiscard]] Result<void> finish();

  /// What all ports received and sent, and what was dropped why. Any thread; exact after run().
  [[nodiscard]] RunTotals totals() const;

  [[nodiscard]] const Forwarder& forwarder() const { return *forwarder_; }
  /// The ports; of a loopback the near one, then the far one.
  [[nodiscard]] const std::vector<port::Port>& ports() const { return ports_->ports(); }
  [[nodiscard]] const runtime::LcorePlan& plan() const { return eal_->plan(); }
  [[nodiscard]] const runtime::Eal& eal() const { return *eal_; }

 private:
  ForwardRun() = default;

  [[nodiscard]] Result<void> launch();

  // Destroyed in reverse: lcores end before the stages that they run, ports close before their pools, the EAL goes
  // last.
  datapath::DatapathSettings settings_;
  datapath::RunInputs inputs_;
  datapath::ForwardLayout layout_;
  std::optional<runtime::Eal> eal_;
  std::optional<ForwardPorts> ports_;
  FarSide* far_ = nullptr;
  std::unique_ptr<Forwarder> forwarder_;
  std::optional<runtime::Workers> workers_;
};

}  // namespace warpline::forward
