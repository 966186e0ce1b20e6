// SPDX-License-Identifier: Apache-2.0
#include "exporter/exporter.h"

#include <variant>

namespace warpline::exporter {

Result<Exporter> Exporter::open(const ExporterSettings& settings, bool telemetry, const MetricsEndpoint::Take& take,
                                const TelemetryCommands::Reload& reload) {
  Exporter exporter;
  if (!std::holds_alternative<std::monostate>(settings.listen)) {
    WARPLINE_TRY(exporter.endpoint_, MetricsEndpoint::open(settings, take));
  }
  if (telemetry) {
    WARPLINE_TRY(exporter.telemetry_, TelemetryCommands::open(take, reload));
  }
  return exporter;
}

void Exporter::poll() {
  if (endpoint_) endpoint_->poll();
  if (telemetry_) telemetry_->poll();
}

}  // namespace warpline::exporter
