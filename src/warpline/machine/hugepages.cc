// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/hugepages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
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

}  // namespace

std::vector<HugepagePool> read_hugepages(const fs::path& sys) {
  std::vector<HugepagePool> pools;
  std::string online;
  std::getline(std::ifstream(sys / "devices/system/node/online"), online);
  for (const int node : parse_cpu_list(online)) {
    read_sizes(sys / fmt::format("devices/system/node/node{}/hugepages", node), node, pools);
  }
  if (pools.empty()) read_sizes(sys / "kernel/mm/hugepages", 0, pools);
  return pools;
}

Bytes free_bytes(const std::vector<HugepagePool>& pools) {
  Bytes sum;
  for (const HugepagePool& pool : pools) sum.value += pool.free * pool.page.value;
  return sum;
}

std::string reserve_command(const std::vector<HugepagePool>& pools, Bytes memory) {
  std::uint64_t pages = (memory.value + kTwoMebibytes - 1) / kTwoMebibytes;
  for (const HugepagePool& pool : pools)
    pages += pool.page.value == kTwoMebibytes ? pool.reserved - std::min(pool.free, pool.reserved) : 0;
  return fmt::format("echo {} | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", pages);
}

}  // namespace warpline::machine
