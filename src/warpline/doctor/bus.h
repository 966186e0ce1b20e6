// SPDX-License-Identifier: Apache-2.0
// What doctor says of each port, and of each port together with each GPU, out of sysfs alone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "warpline/doctor/doctor.h"
#include "warpline/machine/pci_place.h"

namespace warpline::doctor {

/// A network function of the PCI bus.
struct PortAnswers {
  std::string pci;
  bool is_for_dpdk = false;    ///< its driver leaves it to DPDK, or shares it
  std::vector<Check> answers;  ///< driver, link, read requests, relaxed ordering, IOMMU group
};

/// A port with a GPU.
struct PairAnswers {
  std::string port;  ///< address
  std::string gpu;   ///< address
  machine::PciDistance distance = machine::PciDistance::unknown;
  std::vector<Check> answers;  ///< topology, access control, BAR1, direct access
};

struct BusAnswers {
  std::vector<PortAnswers> ports;
  std::vector<PairAnswers> pairs;  ///< by port; the nearest GPU first, then by address
};

/// Looks at `root`/sys and `root`/proc. `gpus`, what CUDA knows, adds the size of their memory, and GPUs that sysfs
/// hides. What cannot be read is a warning that says why, and never an error.
[[nodiscard]] BusAnswers examine_bus(const std::vector<gpu::GpuFacts>& gpus, const std::filesystem::path& root = "/");

}  // namespace warpline::doctor
