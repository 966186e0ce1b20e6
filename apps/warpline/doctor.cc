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
#include "sandbox/sandbox.h"
#include "warpline/doctor/bus.h"
#include "warpline/runtime/stop.h"

namespace warpline {
namespace {

/// What a run can give up once it is set up.
doctor::Check check_confinement() {
  const int landlock = sandbox::landlock_version();
  if (landlock != 0) return {.name = "confinement", .found = fmt::format("seccomp, Landlock {}", landlock), .fix = {}};
  return {.name = "confinement",
          .health = doctor::Health::warning,
          .found = "seccomp, no Landlock: what a run may read and write is not restricted",
          .fix = "use a kernel of 5.13 or later, with landlock among those of its parameter lsm="};
}

void print_table(const std::vector<doctor::Check>& checks) {
  for (const doctor::Check& check : checks) {
    fmt::print("{:<16} {:<8} {}\n", check.name, doctor::name(check.health), check.found);
    if (!check.fix.empty()) fmt::print("{:<16} {:<8} -> {}\n", "", "", check.fix);
  }
}

/// The ports that DPDK can use, or all where it can use none, each with the nearest GPU.
void print_bus(const doctor::BusAnswers& bus) {
  const bool all = std::ranges::none_of(bus.ports, &doctor::PortAnswers::is_for_dpdk);
  for (const doctor::PortAnswers& port : bus.ports) {
    if (!port.is_for_dpdk && !all) continue;
    fmt::print("port {}\n", port.pci);
    print_table(port.answers);
    const auto nearest = std::ranges::find(bus.pairs, port.pci, &doctor::PairAnswers::port);
    if (nearest == bus.pairs.end()) continue;
    fmt::print("port {} with GPU {}\n", nearest->port, nearest->gpu);
    print_table(nearest->answers);
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

nlohmann::json to_json(const std::vector<doctor::Check>& checks) {
  nlohmann::json list = nlohmann::json::array();
  for (const doctor::Check& check : checks) {
    nlohmann::json entry = {{"name", check.name}, {"health", doctor::name(check.health)}, {"found", check.found}};
    if (!check.fix.empty()) entry["fix"] = check.fix;
    list.push_back(std::move(entry));
  }
  return list;
}

nlohmann::json to_json(const doctor::PortAnswers& port) {
  return {{"pci", port.pci}, {"for_dpdk", port.is_for_dpdk}, {"answers", to_json(port.answers)}};
}

nlohmann::json to_json(const doctor::PairAnswers& pair) {
  nlohmann::json object = {{"port", pair.port}, {"gpu", pair.gpu}, {"answers", to_json(pair.answers)}};
  if (pair.distance != machine::PciDistance::unknown) object["topology"] = machine::name(pair.distance);
  return object;
}

template <class Item>
nlohmann::json list_of(const std::vector<Item>& items) {
  nlohmann::json list = nlohmann::json::array();
  for (const Item& item : items) list.push_back(to_json(item));
  return list;
}

}  // namespace

Result<int> run_doctor(const config::LoadedConfig& loaded) {
  const runtime::StopOnSignal on_signal;
  std::vector<doctor::Check> checks = doctor::examine_machine();
  checks.push_back(check_confinement());
  const Result<std::vector<gpu::GpuFacts>> gpus = [] {
    const runtime::SetupStep step("asking CUDA for GPUs");
    return gpu::list_gpus();
  }();
  std::ranges::move(doctor::examine_gpus(gpus), std::back_inserter(checks));
  const auto lacks = [](const doctor::Check& check) { return check.health == doctor::Health::missing; };
  const auto missing = std::ranges::find_if(checks, lacks);
  const bool ready = missing == checks.end();
  const std::vector<gpu::GpuFacts> cards = gpus.ok() ? *gpus : std::vector<gpu::GpuFacts>();
  const doctor::BusAnswers bus = doctor::examine_bus(cards);
  if (loaded.json) {
    const nlohmann::json report = {
        {"schema_version", 1},        {"command", "doctor"},    {"ready", ready},
        {"checks", to_json(checks)},  {"gpus", list_of(cards)}, {"ports", list_of(bus.ports)},
        {"pairs", list_of(bus.pairs)}};
    fmt::print("{}\n", report.dump(2));
  } else {
    print_table(checks);
    print_bus(bus);
    fmt::print("{}\n", ready ? "`warpline forward --loopback` can run here"
                             : "`warpline forward --loopback` cannot run here: see what is missing above");
  }
  if (runtime::StopOnSignal::requested().load()) return kInterrupted;
  if (ready) return 0;
  return environment_error("this machine is not ready", fmt::format("{}: {}", missing->name, missing->found),
                           missing->fix);
}

}  // namespace warpline
