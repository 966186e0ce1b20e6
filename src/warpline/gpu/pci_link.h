// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace warpline::gpu {

/// A PCIe link. All zero where nothing is known.
struct PciLink {
  double gigatransfers = 0;  ///< 10^9 transfers a second and lane: 32 for Gen5
  unsigned lanes = 0;

  /// 1 to 6; 0: unknown.
  [[nodiscard]] int generation() const;
  /// Returns the rate of one direction, after line coding and before packet overhead.
  [[nodiscard]] double gigabit_per_s() const;
  auto operator<=>(const PciLink&) const = default;
};

/// What sysfs says about a PCI function.
struct PciFacts {
  PciLink link_now;
  PciLink link_most;
  int node = -1;          ///< NUMA node; negative: unknown
  std::string root_port;  ///< the bridge that it hangs from at the root; empty: none, or hidden by a virtual machine
};

/// `address` as "0000:17:00.0", in any case. A device that sysfs does not know gives an empty answer.
[[nodiscard]] PciFacts read_pci_facts(const std::string& address, const std::filesystem::path& sys = "/sys");

}  // namespace warpline::gpu
