// SPDX-License-Identifier: Apache-2.0
// `warpline doctor`: what this machine lacks, and the command that mends it.
#include "runtime/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "commands.h"

namespace warpline {
namespace {

void print_table(const std::vector<Check>& checks) {
  for (const Check& check : checks) {
    fmt::print("{:<16} {:<8} {}\n", check.name, name(check.health), check.found);
    if (!check.fix.empty()) fmt::print("{:<16} {:<8} -> {}\n", "", "", check.fix);
  }
}

nlohmann::json to_json(const std::vector<Check>& checks, bool ready) {
  nlohmann::json list = nlohmann::json::array();
  for (const Check& check : checks) {
    nlohmann::json entry = {{"name", check.name}, {"health", name(check.health)}, {"found", check.found}};
    if (!check.fix.empty()) entry["fix"] = check.fix;
    list.push_back(std::move(entry));
  }
  return {{"schema_version", 1}, {"command", "doctor"}, {"ready", ready}, {"checks", std::move(list)}};
}

}  // namespace

int run_doctor(const LoadedConfig& loaded) {
  const std::vector<Check> checks = examine_machine();
  const auto missing =
      std::count_if(checks.begin(), checks.end(), [](const Check& check) { return check.health == Health::missing; });
  if (loaded.json) {
    fmt::print("{}\n", to_json(checks, missing == 0).dump(2));
  } else {
    print_table(checks);
    fmt::print("{}\n", missing == 0 ? "`warpline forward --loopback` can run here"
                                    : "`warpline forward --loopback` cannot run here: see what is missing above");
  }
  return missing == 0 ? 0 : static_cast<int>(ErrorKind::environment);
}

}  // namespace warpline
