// SPDX-License-Identifier: Apache-2.0
#include "warpline/doctor/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "warpline/base/files/read_file.h"
#include "warpline/machine/cgroups.h"
#include "warpline/machine/hugepages.h"
#include "warpline/machine/privileges.h"
#include "warpline/machine/topology.h"

namespace warpline::doctor {
namespace {

namespace fs = std::filesystem;

/// What `forward --loopback` takes with its default configuration, rounded up.
constexpr Bytes kLoopbackMemory{256 << 20};

/// The value after "KEY<blanks>" or "KEY<blanks>:" at the start of a line; empty when there is none.
std::string value_of(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t value = line.find_first_not_of(": \t", key.size());
    return value == std::string::npos ? "" : line.substr(value);
  }
  return {};
}

}  // namespace

std::string_view name(Health health) {
  switch (health) {
    case Health::ok:
      return "ok";
    case Health::warning:
      return "warning";
    case Health::missing:
      return "missing";
  }
  return "";
}

std::vector<Check> examine_machine(const fs::path& root) {
  return {check_hugepages(root), check_memory(root),     check_locked_memory(root), check_cores(root),
          check_isolation(root), check_governor(root),   check_numa(root),          check_cpu_features(root),
          check_dpdk(root),      check_drivers(root),    check_vnic(root),          check_network_devices(root),
          check_vfio(root),      check_privileges(root), check_tun(root),           check_gpu(root),
          check_runtime_folder()};
}

Check check_hugepages(const fs::path& root) {
  const std::vector<machine::HugepagePool> pools = machine::read_hugepages(root);
  std::vector<std::string> parts;
  for (const machine::HugepagePool& pool : pools) {
    if (pool.reserved == 0) continue;
    const std::string withheld =
        pool.withheld == 0 ? "" : fmt::format(", {} withheld by the container's hugetlb limit", pool.withheld);
    parts.push_back(fmt::format("node {}: {} of {} MiB, {} free{}", pool.node, pool.reserved,
                                pool.page.value / kMebibyte, pool.free, withheld));
  }
  Check check{.name = "hugepages", .found = fmt::format("{}", fmt::join(parts, "; ")), .fix = {}};
  if (pools.empty()) {
    check.found = "the kernel has none";
  } else if (parts.empty()) {
    check.found = "none reserved: runs on ordinary pages, slower";
  }
  if (machine::free_bytes(pools).value < kLoopbackMemory.value) {
    check.health = Health::warning;
    const auto is_withheld = [](const machine::HugepagePool& pool) { return pool.withheld != 0; };
    if (pools.empty()) {
      check.fix = "use a kernel built with CONFIG_HUGETLBFS";
    } else if (std::ranges::any_of(pools, is_withheld)) {
      check.fix = machine::reserve_advice(pools, kLoopbackMemory);
    } else {
      check.fix = fmt::format("sudo warpline setup hugepages --memory {}Mi --apply", kLoopbackMemory.value / kMebibyte);
    }
  }
  return check;
}

Check check_memory(const fs::path& root) {
  const std::uint64_t kibibytes = std::strtoull(value_of(root / "proc/meminfo", "MemAvailable").c_str(), nullptr, 10);
  Check check{.name = "memory", .found = fmt::format("{} MiB available", kibibytes / 1024), .fix = {}};
  const std::optional<std::uint64_t> left = machine::cgroup_bytes_left(
      "memory", {"memory.limit_in_bytes", "memory.max"}, {"memory.usage_in_bytes", "memory.current"}, root);
  if (left && *left < kLoopbackMemory.value) {
    check.health = Health::missing;
    check.found += fmt::format(", {} MiB within the container's limit", *left / kMebibyte);
    check.fix = fmt::format("raise the container's memory limit: {} MiB are needed", kLoopbackMemory.value / kMebibyte);
    return check;
  }
  if (kibibytes * 1024 < kLoopbackMemory.value) {
    check.health = Health::missing;
    check.fix = fmt::format("free memory: {} MiB are needed", kLoopbackMemory.value / kMebibyte);
  }
  return check;
}

Check check_locked_memory(const fs::path& root) {
  std::istringstream limits(value_of(root / "proc/self/limits", "Max locked memory"));
  std::string soft;
  limits >> soft;
  Check check{.name = "locked memory", .found = {}, .fix = {}};
  const std::uint64_t bytes = std::strtoull(soft.c_str(), nullptr, 10);
  check.found = soft == "unlimited" ? "unlimited" : fmt::format("{} MiB at most", bytes / kMebibyte);
  if (soft == "unlimited" || bytes >= kLoopbackMemory.value) return check;
  if (machine::read_privileges(root / "proc").ipc_lock) {
    check.found += " without CAP_IPC_LOCK, which this process has";
  } else {
    check.health = Health::warning;
    check.found += ": too little for NICs behind vfio and for pinned memory";
    check.fix = "sudo warpline setup user --name $USER --apply, and log in again";
  }
  return check;
}

Check check_cores(const fs::path& root) {
  const Result<machine::Topology> topology = machine::Topology::of_machine(root / "sys");
  Check check{.name = "cores", .found = {}, .fix = {}};
  if (!topology.ok()) {
    check.health = Health::missing;
    check.found = topology.error().message();
    check.fix = "see taskset(1)";
    return check;
  }
  std::vector<int> cpus;
  for (const machine::Cpu& cpu : topology->cpus) cpus.push_back(cpu.id);
  check.found = fmt::format("{} processors ({}), {} physical cores", cpus.size(), machine::format_cpu_list(cpus),
                            topology->cores());
  std::error_code problem;
  if (const fs::path file = machine::core_file(cpus.front(), root / "sys"); !fs::exists(file, problem)) {
    check.health = Health::missing;
    check.found += fmt::format("; {} is missing, by which DPDK finds them", file.native());
    check.fix = "mount sysfs, as container runtimes do: mount -t sysfs sysfs /sys";
    return check;
  }
  if (const std::optional<double> allowed = machine::cgroup_processors(root);
      allowed && *allowed < static_cast<double>(cpus.size())) {
    check.health = Health::warning;
    check.found +=
        fmt::format("; the container may use the time of {:.2g}, and workers that poll are paused beyond it", *allowed);
    check.fix = "remove the CPU limit, or use fewer processors: --cpuset-cpus; in Kubernetes the static CPU manager";
    return check;
  }
  // Generator, forwarder and checker of the loopback, and control.
  if (topology->cores() < 4) {
    check.health = Health::warning;
    check.found += ": workers will share them";
    check.fix = "use a machine with four cores or more";
  }
  return check;
}

Check check_isolation(const fs::path& root) {
  const std::string isolated = first_line(root / "sys/devices/system/cpu/isolated");
  Check check{.name = "isolation", .found = {}, .fix = {}};
  if (!isolated.empty()) {
    check.found = fmt::format("processors {} are kept from the scheduler", isolated);
    return check;
  }
  check.health = Health::warning;
  check.found = "no processor is isolated: the kernel may interrupt workers";
  check.fix = "add isolcpus=... nohz_full=... rcu_nocbs=... to the kernel's command line";
  return check;
}

Check check_governor(const fs::path& root) {
  std::set<std::string> governors;
  std::error_code ignored;
  for (const fs::directory_entry& cpu : fs::directory_iterator(root / "sys/devices/system/cpu", ignored)) {
    const std::string governor = first_line(cpu.path() / "cpufreq/scaling_governor");
    if (!governor.empty()) governors.insert(governor);
  }
  Check check{.name = "governor", .found = fmt::format("{}", fmt::join(governors, ", ")), .fix = {}};
  if (governors.empty()) {
    check.found = "the clock is not the kernel's to choose";
  } else if (governors != std::set<std::string>{"performance"}) {
    check.health = Health::warning;
    check.found += ": the clock may vary while measuring";
    check.fix = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
  }
  return check;
}

Check check_numa(const fs::path& root) {
  const std::vector<int> nodes = machine::parse_cpu_list(first_line(root / "sys/devices/system/node/online"));
  const std::size_t count = std::max<std::size_t>(nodes.size(), 1);
  Check check{.name = "numa", .found = fmt::format("{} node{}", count, count == 1 ? "" : "s"), .fix = {}};
  const std::string balancing = first_line(root / "proc/sys/kernel/numa_balancing");
  if (count > 1 && balancing == "1") {
    check.health = Health::warning;
    check.found += "; automatic balancing moves pages under the workers";
    check.fix = "sudo sysctl kernel.numa_balancing=0";
  }
  return check;
}

Check check_cpu_features(const fs::path& root) {
  std::istringstream stream(value_of(root / "proc/cpuinfo", "flags"));
  std::set<std::string> flags;
  for (std::string flag; stream >> flag;) flags.insert(flag);
  Check check{.name = "cpu features", .found = {}, .fix = {}};
  if (flags.empty()) {
    check.found = "not x86: none are looked for";
    return check;
  }
  const bool invariant = flags.contains("constant_tsc") && flags.contains("nonstop_tsc");
  check.found = fmt::format("{}invariant TSC, {}AVX2, {}AVX-512", invariant ? "" : "no ",
                            flags.contains("avx2") ? "" : "no ", flags.contains("avx512f") ? "" : "no ");
  if (!flags.contains("sse4_2")) {
    check.health = Health::missing;
    check.found += ", no SSE4.2, which DPDK was built for";
    check.fix = "use a processor of 2009 or later";
  } else if (!invariant) {
    check.health = Health::warning;
    check.found += ": times are not to be trusted when the clock varies";
    check.fix = "in a virtual machine: pass the host's processor through (`-cpu host,+invtsc`)";
  }
  return check;
}

}  // namespace warpline::doctor
