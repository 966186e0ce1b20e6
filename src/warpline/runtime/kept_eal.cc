// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/kept_eal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <rte_config.h>

#include "warpline/machine/topology.h"
#include "warpline/runtime/port_spec.h"

namespace warpline::runtime {
namespace {

constexpr unsigned kLeastWorkers = 8;
/// Without hugepages: what later runs may need more than the first one. It is reserved, not touched.
constexpr std::uint64_t kFurtherMemory = std::uint64_t{1} << 30;

Result<std::vector<std::string>> pci_of(const std::vector<std::string>& port_specs) {
  std::vector<std::string> pci;
  for (const std::string& text : port_specs) {
    WARPLINE_TRY(const PortSpec spec, parse_port_spec(text));
    if (spec.pci) pci.push_back(text);
  }
  return pci;
}

Error started_otherwise(std::string what, std::string why) {
  return environment_error(
      std::move(what), std::move(why),
      "DPDK is started once in a process, by its first run: use a process of its own for this one");
}

}  // namespace

Result<KeptEal> KeptEal::for_first_run(const RuntimeSettings& settings, const LcorePlan& plan,
                                       const std::vector<std::string>& port_specs, Bytes memory,
                                       std::vector<int> cpus) {
  KeptEal made;
  WARPLINE_TRY(made.pci, pci_of(port_specs));
  // EAL knows processors below RTE_MAX_LCORE only; Workers pins to others.
  std::erase_if(cpus, [](int cpu) { return cpu >= RTE_MAX_LCORE; });
  const auto wanted = static_cast<unsigned>(std::max(plan.workers.size(), cpus.size()));
  made.workers = std::min<unsigned>(std::max(wanted, kLeastWorkers), RTE_MAX_LCORE - 1);
  made.cpus = std::move(cpus);
  made.memory = {memory.value + kFurtherMemory};
  made.wants_hugepages = settings.hugepages;
  made.eal = settings.eal;
  made.log_level = settings.log_level;
  made.process = getpid();
  return made;
}

std::string KeptEal::lcores() const {
  const std::string all = machine::format_cpu_list(cpus);
  return fmt::format("0@({}),(1-{})@({})", all, workers, all);
}

Result<void> KeptEal::check(const RuntimeSettings& settings, const LcorePlan& plan,
                            const std::vector<std::string>& port_specs, Bytes needed) const {
  if (process != getpid()) {
    return started_otherwise("a run in a forked process", "the process that it was forked from has started DPDK");
  }
  if (plan.workers.size() > workers) {
    return started_otherwise(fmt::format("a run with {} workers", plan.workers.size()),
                             fmt::format("DPDK was started with lcores for {}", workers));
  }
  if (!hugepages && needed.value > memory.value) {
    return started_otherwise(fmt::format("a run that needs {} MiB for packets", needed.value / kMebibyte),
                             fmt::format("DPDK was started with {} MiB of ordinary pages", memory.value / kMebibyte));
  }
  if (settings.eal != eal || settings.log_level != log_level || settings.hugepages != wants_hugepages) {
    return started_otherwise("other EAL arguments, log level or hugepages than before",
                             fmt::format("DPDK was started with \"{}\", log level {}, hugepages {}", eal,
                                         name(log_level), wants_hugepages ? "where there are some" : "never"));
  }
  WARPLINE_TRY(const std::vector<std::string> wanted, pci_of(port_specs));
  for (const std::string& device : wanted) {
    if (std::ranges::find(pci, device) == pci.end()) {
      return started_otherwise(fmt::format("port {}", device), "DPDK was started without it");
    }
  }
  return {};
}

}  // namespace warpline::runtime
