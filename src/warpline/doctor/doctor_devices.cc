// SPDX-License-Identifier: Apache-2.0
// Doctor's checks of DPDK, its drivers, and the devices that they are for.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include <rte_build_config.h>
#include <rte_version.h>

#include "warpline/doctor/doctor.h"
#include "warpline/machine/pci_devices.h"
#include "warpline/machine/privileges.h"
#include "warpline/port/vnic.h"
#include "warpline/runtime/port_spec.h"
#include "warpline/runtime/telemetry/telemetry_folder.h"

namespace warpline::doctor {
namespace {

namespace fs = std::filesystem;

/// Names as in "net_mlx5", from the files that EAL loads at its start.
std::vector<std::string> net_drivers(const fs::path& root) {
  std::vector<std::string> drivers;
  std::error_code ignored;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(root / fs::path(RTE_EAL_PMD_PATH).relative_path(), ignored)) {
    const std::string file = entry.path().filename();
    constexpr std::string_view kHead = "librte_net_";
    // One name a driver: "librte_net_mlx5.so.23", and not the link to it with the longer version.
    const std::size_t end = file.find(".so");
    if (!file.starts_with(kHead) || end == std::string::npos) continue;
    drivers.push_back(file.substr(kHead.size(), end - kHead.size()));
  }
  std::sort(drivers.begin(), drivers.end());
  drivers.erase(std::unique(drivers.begin(), drivers.end()), drivers.end());
  return drivers;
}

}  // namespace

Check check_dpdk(const fs::path&) {
  Check check{.name = "dpdk", .found = rte_version(), .fix = {}};
  const std::string newest = "25.11";
  const std::string release = check.found.substr(check.found.find_first_of("0123456789"), newest.size());
  if (release < "22.11" || release > newest) {
    check.health = Health::warning;
    check.found += ": not one that the program was tested with";
    check.fix = "use DPDK 22.11 to 25.11";
  }
  return check;
}

Check check_drivers(const fs::path& root) {
  Check check{.name = "drivers", .found = {}, .fix = {}};
  std::error_code problem;
  if (*RTE_EAL_PMD_PATH == '\0' || !fs::exists(root / fs::path(RTE_EAL_PMD_PATH).relative_path(), problem)) {
    check.found = "linked into the program";
    return check;
  }
  const std::vector<std::string> drivers = net_drivers(root);
  check.found = fmt::format("{} for networks: {}", drivers.size(), fmt::join(drivers, " "));
  if (std::find(drivers.begin(), drivers.end(), "ring") == drivers.end()) {
    check.health = Health::missing;
    check.found += "; net_ring is not there";
    check.fix = "sudo apt-get install librte-net-ring23 (or the package of your DPDK's version)";
  }
  return check;
}

Check check_vnic(const fs::path&) {
  if (port::vnic_calls() != nullptr) return {.name = "net_vnic", .found = "built in", .fix = {}};
  const Error error = port::built_without_vnic("");
  return {.name = "net_vnic",
          .health = Health::warning,
          .found = fmt::format("{}: --loopback runs on rings", error.why),
          .fix = error.fix};
}

Check check_network_devices(const fs::path& root) {
  std::vector<std::string> usable;
  std::vector<std::string> others;
  std::vector<std::string> addresses;
  for (const machine::PciDevice& device : machine::pci_devices(root)) {
    if (!device.is_nic()) continue;
    const std::string text =
        fmt::format("{} ({})", device.address, device.driver.empty() ? "no driver" : device.driver);
    (runtime::works_with_dpdk(device.driver) ? usable : others).push_back(text);
    if (!runtime::works_with_dpdk(device.driver)) addresses.push_back(device.address);
  }
  Check check{.name = "network devices", .found = {}, .fix = {}};
  if (!usable.empty()) check.found = fmt::format("for DPDK: {}", fmt::join(usable, ", "));
  if (!others.empty()) {
    check.found += fmt::format("{}the kernel's: {}", usable.empty() ? "" : "; ", fmt::join(others, ", "));
  }
  if (usable.empty()) {
    check.health = Health::warning;
    if (others.empty()) check.found = "none on the PCI bus";
    check.fix = others.empty() ? "none needed for vdevs and --loopback; for line rate, add a NIC that DPDK drives"
                               : fmt::format(
                                     "to give one to DPDK, which takes it from the kernel: "
                                     "sudo warpline setup nic --pci {} --apply",
                                     addresses.front());
  }
  return check;
}

Check check_vfio(const fs::path& root) {
  Check check{.name = "vfio", .found = {}, .fix = {}};
  std::error_code ignored;
  const bool loaded = fs::exists(root / "dev/vfio/vfio", ignored);
  const bool iommu = fs::exists(root / "sys/class/iommu", ignored) && !fs::is_empty(root / "sys/class/iommu", ignored);
  check.found = fmt::format("{}, {}", loaded ? "loaded" : "not loaded", iommu ? "with an IOMMU" : "without an IOMMU");
  if (loaded && iommu) return check;
  check.health = Health::warning;
  check.found += ": needed for NICs bound to vfio-pci only";
  check.fix =
      loaded ? "turn the IOMMU on in the firmware and with intel_iommu=on or amd_iommu=on" : "sudo modprobe vfio-pci";
  return check;
}

Check check_privileges(const fs::path& root) {
  const machine::Privileges own = machine::read_privileges(root / "proc");
  std::vector<std::string> lacking;
  if (!own.net_raw) lacking.emplace_back("CAP_NET_RAW (net_af_packet, net_pcap on interfaces)");
  if (!own.net_admin) lacking.emplace_back("CAP_NET_ADMIN (net_tap)");
  if (!own.sys_admin) lacking.emplace_back("CAP_SYS_ADMIN (NICs without an IOMMU)");
  if (!own.ipc_lock) lacking.emplace_back("CAP_IPC_LOCK (NICs and pinned memory)");
  if (lacking.empty()) return {.name = "privileges", .found = "all that ports need", .fix = {}};
  return {.name = "privileges",
          .health = Health::warning,
          .found = fmt::format("without {}", fmt::join(lacking, ", ")),
          .fix =
              "run as root, or sudo setcap cap_net_raw,cap_net_admin,cap_sys_admin,cap_ipc_lock+ep "
              "$(command -v warpline)"};
}

Check check_tun(const fs::path& root) {
  std::error_code ignored;
  if (fs::exists(root / "dev/net/tun", ignored)) return {.name = "tun", .found = "/dev/net/tun", .fix = {}};
  return {.name = "tun",
          .health = Health::warning,
          .found = "no /dev/net/tun: needed for net_tap only",
          .fix = "sudo modprobe tun"};
}

Check check_runtime_folder() {
  Check check{.name = "runtime folder", .found = runtime::runtime_folder(), .fix = {}};
  if (const Result<void> usable = runtime::check_runtime_folder(); !usable) {
    check.health = Health::missing;
    check.found = usable.error().why;
    check.fix = usable.error().fix;
  }
  return check;
}

Check check_gpu(const fs::path& root) {
  std::vector<std::string> gpus;
  const std::string not_needed = ": CPU engines only";
  for (const machine::PciDevice& device : machine::pci_devices(root)) {
    if (device.is_gpu()) gpus.push_back(device.address);
  }
  const std::string driver = machine::gpu_driver(root);
  if (!driver.empty()) {
    return {.name = "gpu",
            .found = gpus.empty() ? fmt::format("NVIDIA driver {}", driver)
                                  : fmt::format("{}, driver {}", fmt::join(gpus, ", "), driver),
            .fix = {}};
  }
  if (gpus.empty()) {
    return {.name = "gpu",
            .health = Health::warning,
            .found = "no NVIDIA GPU" + not_needed,
            .fix = "none needed for the engines inline and thread"};
  }
  return {.name = "gpu",
          .health = Health::warning,
          .found = fmt::format("{} without a driver{}", fmt::join(gpus, ", "), not_needed),
          .fix = "sudo apt-get install nvidia-driver (or from https://www.nvidia.com/drivers)"};
}

}  // namespace warpline::doctor
