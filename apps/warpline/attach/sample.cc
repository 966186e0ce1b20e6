// SPDX-License-Identifier: Apache-2.0
#include "attach/sample.h"

#include <algorithm>

#include "attach/top_metrics.h"

namespace warpline::attach {
namespace {

constexpr std::chrono::seconds kPatience{5};
constexpr double kMost = 18'446'744'073'709'551'615.0;  ///< of a counter: all else is no number of ours

/// Returns true if it is among the names of `answer`.
bool is_among(const nlohmann::json& answer, std::string_view name) {
  return answer.is_array() && std::any_of(answer.begin(), answer.end(), [&](const nlohmann::json& each) {
           return each.is_string() && each.get_ref<const std::string&>() == name;
         });
}

}  // namespace

void add_answer(Sample& sample, const std::string& name, const nlohmann::json& answer) {
  if (!answer.is_object()) return;
  for (const auto& [label, value] : answer.items()) {
    const double number = value.is_number() ? value.get<double>() : -1;
    if (number >= 0 && number <= kMost) sample.metrics[name][label] = number;
    if (value.is_string() && name == "warpline_build") sample.build[label] = value.get<std::string>();
  }
}

Result<Sample> take_sample(TelemetryClient& process) {
  const auto ask = [&](const std::string& name) {
    return process.ask("/warpline/metrics" + (name.empty() ? name : "," + name), kPatience);
  };
  WARPLINE_TRY(const nlohmann::json names, ask(""));
  Sample sample;
  const auto add = [&](std::string_view name) -> Result<void> {
    if (name.empty() || !is_among(names, name)) return {};
    WARPLINE_TRY(const nlohmann::json answer, ask(std::string(name)));
    add_answer(sample, std::string(name), answer);
    return {};
  };
  WARPLINE_CHECK(add("warpline_build"));
  for (const TopMetric& metric : kTopMetrics) {
    WARPLINE_CHECK(add(metric.name));
    WARPLINE_CHECK(add(metric.bytes));
  }
  sample.time_s = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  return sample;
}

}  // namespace warpline::attach
