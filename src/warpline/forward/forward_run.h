// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "warpline/base/result.h"
#include "warpline/base/statistics/run_totals.h"
#include "warpline/datapath/forward_settings.h"
#include "warpline/datapath/layout.h"
#include "warpline/datapath/run_inputs.h"
#include "warpline/forward/forward_ports.h"
#include "warpline/forward/forwarder.h"
#include "warpline/forward/make_stages.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/runtime/runtime_settings.h"
#include "warpline/runtime/workers.h"

namespace warpline::forward {

/// A Forwarder with all that it needs: cores are planned, DPDK is started, ports are opened, loops are launched. One a
/// process, since DPDK is. One thread, which then is DPDK's control thread, makes all calls but totals().
class ForwardRun {
 public:
  /// Forwards between `settings.ports` from here on, with `make_stages` as Forwarder::create() takes it. Usage and
  /// environment errors say what to change. A loopback is a usage error: it has no far side here.
  [[nodiscard]] static Result<std::unique_ptr<ForwardRun>> start(const datapath::DatapathSettings& settings,
                                                                 const runtime::RuntimeSettings& runtime = {},
                                                                 const StageMaker& make_stages = nullptr);
  ForwardRun(const ForwardRun&) = delete;
  ForwardRun& operator=(const ForwardRun&) = delete;
  /// Stops as run() does.
  ~ForwardRun();

  /// Returns once `stop` is set, settings.packets have been received, ports that all replay files have no more, or an
  /// engine has failed, and what was in hand has left. The error is the engine's.
  [[nodiscard]] Result<void> run(const std::atomic<bool>& stop);

  /// What all ports received and sent, and what was dropped why. Any thread; exact after run().
  [[nodiscard]] RunTotals totals() const;

 private:
  ForwardRun() = default;

  // Destroyed in reverse: lcores end before the stages that they run, ports close before their pools, the EAL goes
  // last.
  datapath::DatapathSettings settings_;
  datapath::RunInputs inputs_;
  datapath::ForwardLayout layout_;
  runtime::LcorePlan plan_;
  std::optional<runtime::Eal> eal_;
  std::optional<ForwardPorts> ports_;
  std::unique_ptr<Forwarder> forwarder_;
  std::optional<runtime::Workers> workers_;
};

}  // namespace warpline::forward
