// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attach/telemetry_client.h"
#include "config/config.h"
#include "warpline/base/result.h"

namespace warpline {

/// `connect_to_process` connects to the process that the command line names. Errors are those of TelemetryClient.
[[nodiscard]] inline Result<attach::TelemetryClient> connect_to_process(const config::AttachConfig& which) {
  return which.pid != 0 ? attach::TelemetryClient::connect_to(which.pid)
                        : attach::TelemetryClient::connect(which.telemetry);
}

}  // namespace warpline
