// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/topology.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "warpline/base/files/read_file.h"

namespace warpline::machine {
namespace {

namespace fs = std::filesystem;

/// The processors that sched_getaffinity allows; its mask grows until the kernel's fits.
std::vector<int> allowed_cpus() {
  for (int capacity = 1024; capacity <= 1 << 20; capacity *= 2) {
    const std::size_t size = CPU_ALLOC_SIZE(capacity);
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(capacity), [](cpu_set_t* s) { CPU_FREE(s); });
    CPU_ZERO_S(size, set.get());
    if (sched_getaffinity(0, size, set.get()) != 0) continue;
    std::vector<int> cpus;
    for (int cpu = 0; cpu < capacity; ++cpu) {
      if (CPU_ISSET_S(cpu, size, set.get())) cpus.push_back(cpu);
    }
    return cpus;
  }
  return {};
}

std::map<int, int> node_of_cpus(const fs::path& nodes) {
  std::map<int, int> node_of;
  for (const int node : parse_cpu_list(first_line(nodes / "online"))) {
    for (const int cpu : parse_cpu_list(first_line(nodes / fmt::format("node{}", node) / "cpulist"))) {
      node_of[cpu] = node;
    }
  }
  return node_of;
}

}  // namespace

Result<Topology> Topology::of_machine(const fs::path& sys) {
  const std::vector<int> allowed = allowed_cpus();
  if (allowed.empty()) {
    return environment_error("cannot tell which processors this process may use", "sched_getaffinity failed",
                             "start it from another shell or container");
  }
  const fs::path system = sys / "devices/system";
  const std::map<int, int> node_of = node_of_cpus(system / "node");
  Topology topology;
  for (const int cpu : allowed) {
    const fs::path folder = system / fmt::format("cpu/cpu{}/topology", cpu);
    std::vector<int> siblings = parse_cpu_list(first_line(folder / "thread_siblings_list"));
    // The first sibling names the core: core_id alone repeats from package to package.
    const int core = siblings.empty() ? cpu : siblings.front();
    const auto node = node_of.find(cpu);
    topology.cpus.push_back({cpu, core, node == node_of.end() ? 0 : node->second});
  }
  return topology;
}

Topology Topology::made_up(int nodes, int cores_a_node, int smt) {
  Topology topology;
  const int all_cores = nodes * cores_a_node;
  for (int sibling = 0; sibling < smt; ++sibling) {
    for (int core = 0; core < all_cores; ++core) {
      topology.cpus.push_back({sibling * all_cores + core, core, core / cores_a_node});
    }
  }
  return topology;
}

int Topology::cores() const {
  std::set<int> ids;
  for (const Cpu& cpu : cpus) ids.insert(cpu.core);
  return static_cast<int>(ids.size());
}

int Topology::nodes() const {
  std::set<int> ids;
  for (const Cpu& cpu : cpus) ids.insert(cpu.node);
  return static_cast<int>(ids.size());
}

std::filesystem::path core_file(int cpu, const std::filesystem::path& sys) {
  return sys / fmt::format("devices/system/cpu/cpu{}/topology/core_id", cpu);
}

std::vector<int> parse_cpu_list(const std::string& text) {
  constexpr int kMost = 1 << 20;
  std::set<int> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int first = 0;
    std::from_chars_result parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc{} || first < 0) return {};
    int last = first;
    if (parsed.ptr != end && *parsed.ptr == '-') parsed = std::from_chars(parsed.ptr + 1, end, last);
    if (parsed.ec != std::errc{} || last < first || last > kMost) return {};
    for (int cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
    if (parsed.ptr != end && *parsed.ptr != ',') return {};
    at = parsed.ptr == end ? end : parsed.ptr + 1;
  }
  return {cpus.begin(), cpus.end()};
}

std::string format_cpu_list(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace warpline::machine
