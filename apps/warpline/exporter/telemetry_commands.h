// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "warpline/base/result.h"
#include "warpline/metrics/snapshot.h"

namespace warpline::exporter {

/// `TelemetryCommands` answers DPDK's telemetry socket, which dpdk-telemetry.py talks to: /warpline/metrics names the
/// families, /warpline/metrics,NAME has the values of one, /warpline/totals those that have one value each,
/// /warpline/drops the drops by reason, without zeros; /warpline/reload reads the configuration again. One at a time in
/// a process; all calls are of one thread.
class TelemetryCommands {
 public:
  /// Returns what is counted so far. Called by poll().
  using Take = std::function<metrics::Snapshot()>;
  /// Reads again what is to be read again, and says line by line what came of it. Called by poll().
  using Reload = std::function<std::string()>;

  /// Registers the commands. DPDK runs, with its telemetry.
  [[nodiscard]] static Result<std::unique_ptr<TelemetryCommands>> open(Take take, Reload reload);
  /// Whoever asks from here on is told that nothing answers.
  ~TelemetryCommands();
  TelemetryCommands(const TelemetryCommands&) = delete;
  TelemetryCommands& operator=(const TelemetryCommands&) = delete;

  /// Takes a snapshot, or reads again, if somebody waits for it: threads of DPDK do, but not for ever.
  void poll();

 private:
  TelemetryCommands(Take take, Reload reload) : take_(std::move(take)), reload_(std::move(reload)) {}
  Take take_;
  Reload reload_;
};

}  // namespace warpline::exporter
