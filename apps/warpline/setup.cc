// SPDX-License-Identifier: Apache-2.0
// `warpline setup`: what a NIC, hugepages or an ordinary user need for DPDK, printed or done, and put back.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "setup/plan.h"
#include "setup/record.h"
#include "warpline/base/output.h"

namespace warpline {
namespace {

using config::Role;

/// Names what is set up, and so the file that has the record of it.
std::string target_of(const config::Config& config) {
  const config::SetupConfig& settings = config.setup;
  if (config.role == Role::nic) return "nic-" + setup::full_pci_address(settings.pci);
  if (config.role == Role::user) return "user";
  const std::string node = settings.pages.node ? fmt::format("-node{}", *settings.pages.node) : "";
  return fmt::format("hugepages{}-{}kB", node, settings.pages.page.value >> 10);
}

Result<setup::Plan> plan(const setup::MachineFiles& machine, const config::Config& config) {
  if (config.role == Role::nic) return setup::plan_nic(machine, config.setup.pci);
  if (config.role == Role::user) return setup::plan_user(machine, config.setup.name);
  return setup::plan_hugepages(machine, config.setup.pages);
}

nlohmann::ordered_json head(const config::Config& config) {
  return {{"schema_version", 1}, {"command", fmt::format("setup {}", name(config.role))}};
}

void print(const nlohmann::ordered_json& report) {
  put_line(stdout, report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

Result<int> put_back(setup::MachineFiles& machine, const config::Config& config) {
  WARPLINE_TRY(const std::vector<setup::Before> record, setup::undo(machine, target_of(config)));
  if (config.run.json) {
    nlohmann::ordered_json report = head(config);
    report["undone"] = nlohmann::ordered_json::array();
    for (const setup::Before& before : record) {
      report["undone"].push_back({{"path", before.change.path}, {"before", before.value}});
    }
    print(report);
    return 0;
  }
  for (const setup::Before& before : record) put_line(stdout, fmt::format("{}: as it was", before.change.path));
  if (record.empty()) put_line(stdout, "nothing was set up");
  return 0;
}

}  // namespace

Result<int> run_setup(const config::LoadedConfig& loaded) {
  const config::Config& config = loaded.config;
  setup::MachineFiles machine;
  if (config.setup.undo) return put_back(machine, config);
  WARPLINE_TRY(const setup::Plan planned, plan(machine, config));
  std::vector<std::string> lines = planned.beforehand;
  for (const setup::Change& change : planned.changes) {
    for (std::string& line : setup::commands(machine, change)) lines.push_back(std::move(line));
  }
  if (config.setup.apply) WARPLINE_CHECK(setup::carry_out(machine, target_of(config), planned));
  if (config.run.json) {
    nlohmann::ordered_json report = head(config);
    report["applied"] = config.setup.apply;
    report["commands"] = lines;
    report["notes"] = planned.notes;
    print(report);
    return 0;
  }
  for (const std::string& note : planned.notes) spdlog::info("{}", note);
  if (lines.empty()) put_line(stdout, "nothing is to be done");
  if (!config.setup.apply) {
    for (const std::string& line : lines) put_line(stdout, line);
    return 0;
  }
  for (const setup::Change& change : planned.changes) {
    put_line(stdout, fmt::format("{}: {}", change.path, change.value.substr(0, change.value.find('\n'))));
  }
  return 0;
}

}  // namespace warpline
