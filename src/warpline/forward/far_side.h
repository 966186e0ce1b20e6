// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "warpline/base/result.h"
#include "warpline/datapath/layout.h"
#include "warpline/forward/forward_ports.h"
#include "warpline/forward/forwarder.h"
#include "warpline/runtime/lcore_plan.h"

namespace warpline::forward {

/// The other end of a loopback's wire, which sends what a ForwardRun receives. The run's control thread makes all calls
/// but run().
class FarSide {
 public:
  FarSide() = default;
  FarSide(const FarSide&) = delete;
  FarSide& operator=(const FarSide&) = delete;
  virtual ~FarSide() = default;

  /// Returns the bytes of the longest frame that it sends.
  [[nodiscard]] virtual std::uint32_t max_frame() const = 0;
  /// Returns the most frames that it sends at once.
  [[nodiscard]] virtual std::uint16_t burst() const = 0;
  /// Makes its workers; the ports are open, the second is its own. What it is given outlives it.
  [[nodiscard]] virtual Result<void> prepare(const ForwardPorts& ports, const Forwarder& forwarder,
                                             const datapath::ForwardLayout& layout, const runtime::LcorePlan& plan) = 0;
  /// Does what the worker of this role does, until it is done. On that worker's lcore.
  virtual void run(std::size_t role) = 0;
  /// Sends no more and waits for what is on its way, if `hurried` not for long.
  virtual void stop(bool hurried) = 0;
  /// Returns whether all workers are done.
  [[nodiscard]] virtual bool done() const = 0;
};

}  // namespace warpline::forward
