// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "warpline/base/units.h"

namespace warpline::machine {

/// Huge pages of one size on one NUMA node.
struct HugepagePool {
  int node;
  Bytes page;
  std::uint64_t reserved;
  std::uint64_t free;  ///< for this process
  std::uint64_t withheld =
      0;  ///< free ones that the hugetlb cgroup of this process, that of a container, does not allow
};

/// Reads the machine's pages from sys/devices/system/node below `root`, or from sys/kernel/mm (as node 0) on kernels
/// without NUMA, and the limits of the process's hugetlb cgroups, of version 1 or 2 (cgroup-v2.rst, "HugeTLB").
[[nodiscard]] std::vector<HugepagePool> read_hugepages(const std::filesystem::path& root = "/");
[[nodiscard]] Bytes free_bytes(const std::vector<HugepagePool>& pools);

/// Returns how to get so many 2 MiB pages that `memory` of them is free: the command, or the limit to raise.
[[nodiscard]] std::string reserve_advice(const std::vector<HugepagePool>& pools, Bytes memory);

}  // namespace warpline::machine
