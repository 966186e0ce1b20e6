// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "warpline/base/result.h"

namespace warpline::machine {

/// One logical processor.
struct Cpu {
  int id;
  int core;  ///< physical core, unique in the machine: SMT siblings have the same
  int node;  ///< NUMA node
  auto operator<=>(const Cpu&) const = default;
};

/// The processors that this process may run on, by rising id.
struct Topology {
  std::vector<Cpu> cpus;

  /// From the thread's affinity mask and `sys`/devices/system. A processor that sysfs says nothing about is a core of
  /// its own on node 0.
  [[nodiscard]] static Result<Topology> of_machine(const std::filesystem::path& sys = "/sys");
  /// A made-up machine: `nodes` x `cores_a_node` x `smt`, numbered as Linux does: first siblings of all cores first.
  [[nodiscard]] static Topology made_up(int nodes, int cores_a_node, int smt);

  /// Distinct physical cores.
  [[nodiscard]] int cores() const;
  /// Distinct NUMA nodes.
  [[nodiscard]] int nodes() const;
};

/// Returns the file of a processor without which DPDK does not find it (EAL's eal_cpu_detected()).
[[nodiscard]] std::filesystem::path core_file(int cpu, const std::filesystem::path& sys = "/sys");

/// Parses the kernel's list format, "0-3,8,10-11". Text that is not one gives an empty list.
[[nodiscard]] std::vector<int> parse_cpu_list(const std::string& text);
/// The inverse: rising ids, runs folded.
[[nodiscard]] std::string format_cpu_list(const std::vector<int>& cpus);

}  // namespace warpline::machine
