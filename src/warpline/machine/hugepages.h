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
  std::uint64_t free;
};

/// From `sys`/devices/system/node, or from `sys`/kernel/mm (as node 0) on kernels without NUMA.
[[nodiscard]] std::vector<HugepagePool> read_hugepages(const std::filesystem::path& sys = "/sys");
[[nodiscard]] Bytes free_bytes(const std::vector<HugepagePool>& pools);

/// The command that reserves 2 MiB pages so that `memory` of them is free.
[[nodiscard]] std::string reserve_command(const std::vector<HugepagePool>& pools, Bytes memory);

}  // namespace warpline::machine
