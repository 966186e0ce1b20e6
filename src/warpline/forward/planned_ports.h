// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/datapath/forward_settings.h"
#include "warpline/datapath/layout.h"
#include "warpline/datapath/run_inputs.h"
#include "warpline/forward/forward_ports.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/runtime/runtime_settings.h"

namespace warpline::forward {

/// The ports of a run whose packets go from queue to queue by a layout, with what they need: the workers are placed,
/// DPDK is started, the ports are opened. The control thread makes all calls.
class PlannedPorts {
 public:
  /// Says who does what, as datapath::lay_out_forward() does.
  using LayOut = datapath::ForwardLayout(const datapath::DatapathSettings& settings, const std::vector<int>& nodes,
                                         std::size_t cpus);

  /// Looks at the ports and the machine, and places the workers that `lay_out` wants. Nothing is started. Usage and
  /// environment errors say what to change.
  [[nodiscard]] static Result<std::unique_ptr<PlannedPorts>> plan(const datapath::DatapathSettings& settings,
                                                                  const runtime::RuntimeSettings& runtime,
                                                                  LayOut& lay_out);
  PlannedPorts(const PlannedPorts&) = delete;
  PlannedPorts& operator=(const PlannedPorts&) = delete;

  /// Starts DPDK and opens the ports. `beside` is the host memory that the run needs beside the packets.
  [[nodiscard]] Result<void> open(const FarTraffic& far_traffic = {}, Bytes beside = {});

  /// As given to plan(), but that `packets` is no more than the ports have to give.
  [[nodiscard]] const datapath::DatapathSettings& settings() const { return settings_; }
  [[nodiscard]] const datapath::ForwardLayout& layout() const { return layout_; }
  [[nodiscard]] const runtime::LcorePlan& lcores() const { return lcores_; }
  /// True when so many packets, `received`, are all that the run is to receive.
  [[nodiscard]] bool used_up(std::uint64_t received) const {
    return inputs_.used_up(settings_.packets, received, ports_->ports());
  }

  // After open().
  [[nodiscard]] ForwardPorts& ports() { return *ports_; }
  [[nodiscard]] const ForwardPorts& ports() const { return *ports_; }
  [[nodiscard]] bool opened() const { return ports_.has_value(); }
  [[nodiscard]] const runtime::Eal& eal() const { return *eal_; }
  /// Hands DPDK's environment over to an owner that outlives the ports.
  [[nodiscard]] runtime::Eal take_eal() { return *std::exchange(eal_, std::nullopt); }

 private:
  PlannedPorts(const datapath::DatapathSettings& settings, const runtime::RuntimeSettings& runtime)
      : settings_(settings), runtime_(runtime) {}

  // Destroyed in reverse: ports close before the EAL goes.
  datapath::DatapathSettings settings_;
  runtime::RuntimeSettings runtime_;
  datapath::RunInputs inputs_;
  datapath::ForwardLayout layout_;
  runtime::LcorePlan lcores_;
  std::optional<runtime::Eal> eal_;
  std::optional<ForwardPorts> ports_;
};

}  // namespace warpline::forward
