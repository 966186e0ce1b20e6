// SPDX-License-Identifier: Apache-2.0
// Where functions are on the PCI bus, and what lies between them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "warpline/base/units.h"
#include "warpline/machine/pci_config_space.h"

namespace warpline::machine {

/// How far apart two functions are, in the classes of `nvidia-smi topo --matrix`, nearest first.
enum class PciDistance : std::uint8_t {
  pix,   ///< one PCIe switch at most
  pxb,   ///< several switches, no host bridge
  phb,   ///< a host bridge (the CPU)
  node,  ///< several host bridges of one NUMA node
  sys,   ///< from NUMA node to NUMA node
  unknown,
};

/// "PIX" and so on; "unknown".
[[nodiscard]] std::string_view name(PciDistance distance);

struct PciPlace {
  std::string host_bridge;           ///< "pci0000:00"; empty: sysfs does not show the way
  std::vector<std::string> bridges;  ///< from there to the function, by address
  int node = -1;                     ///< NUMA node; negative: unknown
};

/// Finds the function's way in `root`/sys. Knows nothing of one that is not there.
[[nodiscard]] PciPlace pci_place(const std::filesystem::path& root, const std::string& address);

[[nodiscard]] PciDistance distance_between(const PciPlace& one, const PciPlace& other);

/// The bridges below the last one that both share, of both: those that could keep what one sends to the other within
/// their switches. Empty where a host bridge is between them.
[[nodiscard]] std::vector<std::string> bridges_between(const PciPlace& one, const PciPlace& other);

/// The function itself, or of a virtual function (SR-IOV) the physical one, which has what a VF's registers leave out.
[[nodiscard]] std::string physical_function(const std::filesystem::path& root, const std::string& address);

/// Size of its largest prefetchable memory region, out of `resource`; of an NVIDIA GPU that is BAR1.
[[nodiscard]] Told<Bytes> largest_memory_region(const std::filesystem::path& root, const std::string& address);

struct GroupMate {
  std::string address;
  std::string driver;  ///< of the kernel; empty: none has it

  /// Whether it keeps vfio from giving the group to a program.
  [[nodiscard]] bool in_the_way() const { return !driver.empty() && driver != "vfio-pci"; }
};

/// The other functions of its IOMMU group by address, bridges left out, which vfio does not ask about. `devices`:
/// /sys/bus/pci/devices.
[[nodiscard]] Told<std::vector<GroupMate>> iommu_group_mates(const std::filesystem::path& devices,
                                                             const std::string& address);

/// "0000:17:00.1 (ice), 0000:17:00.2 (ice)": those of them that are in the way.
[[nodiscard]] std::string list_in_the_way(const std::vector<GroupMate>& mates);

}  // namespace warpline::machine
