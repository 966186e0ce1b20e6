// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/hugepages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

#include "warpline/base/files/read_file.h"
#include "warpline/machine/cgroups.h"
#include "warpline/machine/topology.h"

namespace warpline::machine {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kTwoMebibytes = 2 << 20;

void read_sizes(const fs::path& folder, int node, std::vector<HugepagePool>& pools) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    unsigned long kibibytes = 0;
    if (std::sscanf(entry.path().filename().c_str(), "hugepages-%lukB", &kibibytes) != 1) continue;
    pools.push_back({node, Bytes{kibibytes << 10}, number_in_file(entry.path() / "nr_hugepages"),
                     number_in_file(entry.path() / "free_hugepages")});
  }
}

/// Returns a page size as the files of the hugetlb controller name it: "2MB", "1GB".
std::string size_name(Bytes page) {
  const std::uint64_t kibibytes = page.value >> 10;
  if (kibibytes >= 1U << 20) return fmt::format("{}GB", kibibytes >> 20);
  return kibibytes >= 1U << 10 ? fmt::format("{}MB", kibibytes >> 10) : fmt::format("{}KB", kibibytes);
}

/// Returns the bytes of pages of a size that the control groups still allow (cgroup-v2.rst and hugetlb.rst, "HugeTLB").
std::uint64_t allowed_bytes(Bytes page, const fs::path& root) {
  std::uint64_t allowed = UINT64_MAX;
  for (const char* const kind : {"", ".rsvd"}) {
    const std::string name = fmt::format("hugetlb.{}{}", size_name(page), kind);
    const CgroupFile limit{name + ".limit_in_bytes", name + ".max"};
    const CgroupFile usage{name + ".usage_in_bytes", name + ".current"};
    allowed = std::min(allowed, cgroup_bytes_left("hugetlb", limit, usage, root).value_or(allowed));
  }
  return allowed;
}

/// Withholds what the control groups do not allow, of the last nodes first.
void apply_cgroups(const fs::path& root, std::vector<HugepagePool>& pools) {
  std::map<std::uint64_t, std::uint64_t> left;  // pages, by their size
  for (HugepagePool& pool : pools) {
    const std::uint64_t page = pool.page.value;
    if (page == 0) continue;
    if (!left.contains(page)) left[page] = allowed_bytes(pool.page, root) / page;
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
  apply_cgroups(root, pools);
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
