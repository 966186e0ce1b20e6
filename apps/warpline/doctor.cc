// SPDX-License-Identifier: Apache-2.0
// `warpline doctor`: what this machine lacks, and the command that mends it.
#include "warpline/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "warpline/runtime/stop.h"

namespace warpline {
namespace {

void print_table(const std::vector<doctor::Check>& checks) {
  for (const doctor::Check& check : checks) {
    fmt::print("{:<16} {:<8} {}\n", check.name, doctor::name(check.health), check.found);
    if (!check.fix.empty()) fmt::print("{:<16} {:<8} -> {}\n", "", "", check.fix);
  }
}

nlohmann::json to_json(const gpu::PciLink& link) {
  return {{"gigatransfers", link.gigatransfers}, {"lanes", link.lanes}};
}

nlohmann::json to_json(const gpu::GpuFacts& gpu) {
  nlohmann::json object = {{"ordinal", gpu.ordinal},
                           {"name", gpu.name},
                           {"pci", gpu.pci},
                           {"multiprocessors", gpu.multiprocessors},
                           {"memory_bytes", gpu.memory.value},
                           {"compute", fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor)},
                           {"cuda_of_driver", gpu.driver_version},
                           {"cuda_of_program", gpu.runtime_version},
                           {"pcie_now", to_json(gpu.link_now)},
                           {"pcie_most", to_json(gpu.link_most)},
                           {"host_pointers_usable", gpu.host_pointers_usable},
                           {"gpudirect", gpu.gpudirect},
                           {"dma_buf", gpu.dma_buf},
                           {"peermem", gpu.peermem}};
  if (gpu.node >= 0) object["node"] = gpu.node;
  return object;
}

nlohmann::json to_json(const std::vector<doctor::Check>& checks, const std::vector<gpu::GpuFacts>& gpus, bool ready) {
  nlohmann::json list = nlohmann::json::array();
  for (const doctor::Check& check : checks) {
    nlohmann::json entry = {{"name", check.name}, {"health", doctor::name(check.health)}, {"found", check.found}};
    if (!check.fix.empty()) entry["fix"] = check.fix;
    list.push_back(std::move(entry));
  }
  nlohmann::json cards = nlohmann::json::array();
  for (const gpu::GpuFacts& gpu : gpus) cards.push_back(to_json(gpu));
  return {{"schema_version", 1},
          {"command", "doctor"},
          {"ready", ready},
          {"checks", std::move(list)},
          {"gpus", std::move(cards)}};
}

}  // namespace

Result<int> run_doctor(const config::LoadedConfig& loaded) {
  const runtime::StopOnSignal on_signal;
  std::vector<doctor::Check> checks = doctor::examine_machine();
  const Result<std::vector<gpu::GpuFacts>> gpus = [] {
    const runtime::SetupStep step("asking CUDA for GPUs");
    return gpu::list_gpus();
  }();
  std::ranges::move(doctor::examine_gpus(gpus), std::back_inserter(checks));
  const auto missing = std::count_if(
      checks.begin(), checks.end(), [](const doctor::Check& check) { return check.health == doctor::Health::missing; });
  if (loaded.json) {
    fmt::print("{}\n", to_json(checks, gpus.ok() ? *gpus : std::vector<gpu::GpuFacts>(), missing == 0).dump(2));
  } else {
    print_table(checks);
    fmt::print("{}\n", missing == 0 ? "`warpline forward --loopback` can run here"
                                    : "`warpline forward --loopback` cannot run here: see what is missing above");
  }
  if (runtime::StopOnSignal::requested().load()) return kInterrupted;
  return missing == 0 ? 0 : static_cast<int>(ErrorKind::environment);
}

}  // namespace warpline
