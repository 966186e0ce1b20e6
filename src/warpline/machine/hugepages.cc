// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/hugepages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

#include "warpline/machine/topology.h"

namespace warpline::machine {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kTwoMebibytes = 2 << 20;

std::uint64_t read_number(const fs::path& path) {
  std::uint64_t number = 0;
  std::ifstream(path) >> number;
  return number;
}

void read_sizes(const fs::path& folder, int node, std::vector<HugepagePool>& pools) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    unsigned long kibibytes = 0;
    if (std::sscanf(entry.path().filename().c_str(), "hugepages-%lukB", &kibibytes) != 1) continue;
    pools.push_back({node, Bytes{kibibytes << 10}, read_number(entry.path() / "nr_hugepages"),
                     read_number(entry.path() / "free_hugepages")});
  }
}

/// Returns a page size as the files of the hugetlb controller name it: "2MB", "1GB".
std::string size_name(Bytes page) {
  const std::uint64_t kibibytes = page.value >> 10;
  if (kibibytes >= 1U << 20) return fmt::format("{}GB", kibibytes >> 20);
  return kibibytes >= 1U << 10 ? fmt::format("{}MB", kibibytes >> 10) : fmt::format("{}KB", kibibytes);
}

/// The hugetlb controller's folder of this process, and the folder of the hierarchy, which has the process's ancestors.
struct HugetlbCgroup {
  fs::path top;
  fs::path path;  ///< below `top`
  bool is_version_2 = true;
};

/// Returns the cgroups of this process that may have a hugetlb controller (cgroups(7), /proc/self/cgroup).
std::vector<HugetlbCgroup> hugetlb_cgroups(const fs::path& root) {
  std::vector<HugetlbCgroup> found;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path path = fs::path(line.substr(second + 1)).relative_path();
    const fs::path cgroups = root / "sys/fs/cgroup";
    if (controllers == ",,") {
      found.push_back({cgroups, path});
      found.push_back({cgroups / "unified", path});
    } else if (controllers.find(",hugetlb,") != std::string::npos) {
      found.push_back({cgroups / "hugetlb", path, false});
    }
  }
  return found;
}

/// Returns the bytes of pages of a size that the cgroups still allow.
std::uint64_t allowed_bytes(const std::vector<HugetlbCgroup>& cgroups, Bytes page) {
  std::uint64_t allowed = UINT64_MAX;
  const std::string name = "hugetlb." + size_name(page);
  for (const HugetlbCgroup& cgroup : cgroups) {
    // In a container the path is often that of the host, and the container's own cgroup is at the top.
    fs::path folder = cgroup.top;
    auto next = cgroup.path.begin();
    while (true) {
      for (const std::string& kind : {std::string(), std::string(".rsvd")}) {
        const fs::path limit = folder / (name + kind + (cgroup.is_version_2 ? ".max" : ".limit_in_bytes"));
        const fs::path usage = folder / (name + kind + (cgroup.is_version_2 ? ".current" : ".usage_in_bytes"));
        std::uint64_t most = 0;
        if (!(std::ifstream(limit) >> most)) continue;  // there is none, or it says "max"
        allowed = std::min(allowed, most - std::min(most, read_number(usage)));
      }
      if (next == cgroup.path.end()) break;
      folder /= *next++;
    }
  }
  return allowed;
}

/// Withholds what the cgroups do not allow, of the last nodes first.
void apply_cgroups(const std::vector<HugetlbCgroup>& cgroups, std::vector<HugepagePool>& pools) {
  std::map<std::uint64_t, std::uint64_t> left;  // pages, by their size
  for (HugepagePool& pool : pools) {
    const std::uint64_t page = pool.page.value;
    if (page == 0) continue;
    if (!left.contains(page)) left[page] = allowed_bytes(cgroups, pool.page) / page;
    const std::uint64_t usable = std::min(pool.free, left[page]);
    pool.withheld = pool.free - usable;
    pool.free = usable;
    left[page] -= usable;
  }
}

}  // namespace

std::vector<HugepagePool> read_hugepages(const fs::path& root) {
  const fs::path sys = root / "sys";
  std::vector<HugepagePool> pools;
  std::string online;
  std::getline(std::ifstream(sys / "devices/system/node/online"), online);
  for (const int node : parse_cpu_list(online)) {
    read_sizes(sys / fmt::format("devices/system/node/node{}/hugepages", node), node, pools);
  }
  if (pools.empty()) read_sizes(sys / "kernel/mm/hugepages", 0, pools);
  apply_cgroups(hugetlb_cgroups(root), pools);
  return pools;
}

Bytes free_bytes(const std::vector<HugepagePool>& pools) {
  Bytes sum;
  for (const HugepagePool& pool : pools) sum.value += pool.free * pool.page.value;
  return sum;
}

std::string reserve_advice(const std::vector<HugepagePool>& pools, Bytes memory) {
  const auto is_withheld = [](const HugepagePool& pool) { return pool.withheld != 0; };
  if (std::ranges::any_of(pools, is_withheld)) {
    return fmt::format(
        "raise the hugetlb limit of the container by {} MiB, in Kubernetes by a request of hugepages-2Mi",
        (memory.value + kTwoMebibytes - 1) / kTwoMebibytes * 2);
  }
  std::uint64_t pages = (memory.value + kTwoMebibytes - 1) / kTwoMebibytes;
  for (const HugepagePool& pool : pools)
    pages += pool.page.value == kTwoMebibytes ? pool.reserved - std::min(pool.free, pool.reserved) : 0;
  return fmt::format("`echo {} | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages`", pages);
}

}  // namespace warpline::machine
