// SPDX-License-Identifier: Apache-2.0
// What a machine needs for `warpline setup nic`, `hugepages` and `user`. Looks, and changes nothing.
#pragma once

#include <string>
#include <vector>

#include "setup/change.h"
#include "setup/hugepage_request.h"
#include "setup/machine_files.h"
#include "warpline/base/result.h"

namespace warpline::setup {

/// What is to be done, without what is so already.
struct Plan {
  std::vector<std::string> beforehand;  ///< commands that somebody else has to have run
  std::vector<Change> changes;
  std::vector<std::string> notes;  ///< what whoever does it should know
};

/// Returns a PCI address with its domain: "0000:01:00.0" also of "01:00.0".
[[nodiscard]] std::string full_pci_address(const std::string& address);

/// Plans to give the network function at a PCI address, "0000:01:00.0" or "01:00.0", to vfio-pci. Usage error: there is
/// none, or it is no NIC. Environment error: the kernel uses it, or an interface that stands on it, or there is no
/// IOMMU.
[[nodiscard]] Result<Plan> plan_nic(const MachineFiles& machine, const std::string& address);

/// Plans to reserve huge pages. Usage error: the machine has no such pages, or no such node.
[[nodiscard]] Result<Plan> plan_hugepages(const MachineFiles& machine, const HugepageRequest& request);

/// Plans to give an ordinary user what NICs behind vfio and pinned memory take: the groups of VFIO, and any amount of
/// locked memory. Huge pages need no right. Usage error: there is no such user, or another one has it.
[[nodiscard]] Result<Plan> plan_user(const MachineFiles& machine, const std::string& name);

}  // namespace warpline::setup
