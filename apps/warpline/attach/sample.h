// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "attach/telemetry_client.h"
#include "warpline/base/result.h"

namespace warpline::attach {

/// What a process had counted at some moment.
struct Sample {
  double time_s = 0;  ///< of a clock that does not step back
  /// Values of a metric by those of its labels, as DPDK's telemetry has them; "value" without labels.
  std::map<std::string, std::map<std::string, double>> metrics{};
  std::map<std::string, std::string> build{};  ///< "command", "version"
};

/// Adds what `answer` says of the metric `name`; nothing if it is no dictionary.
void add_answer(Sample& sample, const std::string& name, const nlohmann::json& answer);

/// Asks for all metrics that the table of `top` has. Errors are those of TelemetryClient::ask().
[[nodiscard]] Result<Sample> take_sample(TelemetryClient& process);

}  // namespace warpline::attach
