// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "warpline/base/result.h"
#include "warpline/metrics/snapshot.h"

namespace warpline::exporter {

/// `TelemetryCommands` answers DPDK's telemetry socket, which dpdk-telemetry.py talks to: /warpline/metrics names the
/// families, /warpline/metrics,NAME has the values of one, /warpline/totals those that have one value each,
/// /warpline/drops the drops by reason, without zeros. One at a time in a process; all calls are of one thread.
class TelemetryCommands {
 public:
  /// Returns what is counted so far. Called by poll().
  using Take = std::function<metrics::Snapshot()>;

  /// Registers the commands. DPDK runs, with its telemetry.
  [[nodiscard]] static Result<std::unique_ptr<TelemetryCommands>> open(Take take);
  /// Whoever asks from here on is told that nothing answers.
  ~TelemetryCommands();
  TelemetryCommands(const TelemetryCommands&) = delete;
  TelemetryCommands& operator=(const TelemetryCommands&) = delete;

  /// Takes a snapshot if somebody waits for one: threads of DPDK do, for a second at most.
  void poll();

 private:
  explicit TelemetryCommands(Take take) : take_(std::move(take)) {}
  Take take_;
};

}  // namespace warpline::exporter
