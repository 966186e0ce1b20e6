// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "exporter/exporter_settings.h"
#include "exporter/metrics_endpoint.h"
#include "exporter/telemetry_commands.h"
#include "warpline/base/result.h"
#include "warpline/metrics/snapshot.h"

namespace warpline::exporter {

/// `Exporter` is where a run says what it counts: to scrapers over HTTP, and to DPDK's telemetry, as far as it is asked
/// to. All calls are of the control thread, which reads the totals too.
class Exporter {
 public:
  /// Answers whenever poll() is called, by `take` and `reload`, which refer to nothing that goes before the last
  /// poll(). `telemetry`: DPDK runs, with its telemetry. Fails as MetricsEndpoint::open() does.
  [[nodiscard]] static Result<Exporter> open(const ExporterSettings& settings, bool telemetry,
                                             const MetricsEndpoint::Take& take,
                                             const TelemetryCommands::Reload& reload);
  /// Lets these networks scrape from now on, beside this machine.
  void allow(const std::vector<InterfaceAddress>& networks) {
    if (endpoint_) endpoint_->allow(networks);
  }
  /// Does what there is to do, and waits for nothing.
  void poll();

 private:
  std::unique_ptr<MetricsEndpoint> endpoint_;
  std::unique_ptr<TelemetryCommands> telemetry_;
};

}  // namespace warpline::exporter
