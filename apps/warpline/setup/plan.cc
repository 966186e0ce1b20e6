// SPDX-License-Identifier: Apache-2.0
#include "setup/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "warpline/machine/pci_devices.h"
#include "warpline/machine/pci_place.h"

namespace warpline::setup {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVfio = "vfio-pci";
constexpr const char* kMellanox = "0x15b3";
const fs::path kFunctions = "/sys/bus/pci/devices";
const std::string kUdevRules = "/etc/udev/rules.d/60-warpline.rules";
const std::string kLimits = "/etc/security/limits.d/warpline.conf";

std::vector<std::string> names_in(const MachineFiles& machine, const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(machine.at(folder), ignored)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Interfaces of a function: its own, or those of the virtio device that it has.
std::vector<std::string> interfaces_of(const MachineFiles& machine, const std::string& address) {
  std::vector<std::string> interfaces = names_in(machine, kFunctions / address / "net");
  for (const std::string& child : names_in(machine, kFunctions / address)) {
    if (!child.starts_with("virtio")) continue;
    for (std::string& interface : names_in(machine, kFunctions / address / child / "net")) {
      interfaces.push_back(std::move(interface));
    }
  }
  return interfaces;
}

/// Whether packets of this machine leave by an interface. Those of IPv6 that every interface has do not count.
bool has_routes(const MachineFiles& machine, const std::string& interface) {
  std::istringstream ipv4(machine.read("/proc/net/route"));
  for (std::string line; std::getline(ipv4, line);) {
    if (line.substr(0, line.find('\t')) == interface) return true;
  }
  std::istringstream ipv6(machine.read("/proc/net/ipv6_route"));
  for (std::string line; std::getline(ipv6, line);) {
    std::istringstream words(line);
    std::string destination;
    std::string last;
    words >> destination;
    for (std::string word; words >> word;) last = word;
    if (last == interface && !destination.starts_with("fe80") && !destination.starts_with("ff")) return true;
  }
  return false;
}

/// Returns the interfaces that stand on this one: its bridge, bond or VRF, its VLANs and macvlans.
std::vector<std::string> upper_interfaces(const MachineFiles& machine, const std::string& interface) {
  constexpr std::string_view kUpper = "upper_";
  const fs::path folder = fs::path("/sys/class/net") / interface;
  std::vector<std::string> uppers;
  for (const std::string& name : names_in(machine, folder)) {
    if (name.starts_with(kUpper)) uppers.push_back(name.substr(kUpper.size()));
  }
  const std::string master = machine.link_name(folder / "master");
  if (!master.empty() && std::ranges::find(uppers, master) == uppers.end()) uppers.push_back(master);
  return uppers;
}

/// Refuses an interface that the kernel sends or receives packets by, itself or for an interface that stands on it.
Result<void> check_unused(const MachineFiles& machine, const std::string& what, const std::string& interface) {
  if (has_routes(machine, interface) || machine.has_ipv4_address(interface)) {
    return environment_error(
        what, fmt::format("the kernel has addresses or routes on {}", interface),
        fmt::format("take another port, or if no connection needs it: sudo ip addr flush dev {}", interface));
  }
  const std::vector<std::string> uppers = upper_interfaces(machine, interface);
  if (uppers.empty()) return {};
  const std::string& upper = uppers.front();
  const bool is_master = machine.link_name(fs::path("/sys/class/net") / interface / "master") == upper;
  return environment_error(
      what, fmt::format("{} is below {}, which would lose its packets", interface, fmt::join(uppers, ", ")),
      fmt::format("take another port, or if no connection needs it: sudo ip link {}",
                  is_master ? fmt::format("set {} nomaster", interface) : fmt::format("delete {}", upper)));
}

/// Adds a change, unless it is so already.
Result<void> add(const MachineFiles& machine, Change change, Plan& plan) {
  WARPLINE_TRY(const std::string now, current(machine, change));
  if (now != change.value) plan.changes.push_back(std::move(change));
  return {};
}

}  // namespace

std::string full_pci_address(const std::string& address) {
  return std::ranges::count(address, ':') == 1 ? "0000:" + address : address;
}

Result<Plan> plan_nic(const MachineFiles& machine, const std::string& given) {
  const std::string address = full_pci_address(given);
  const std::string what = fmt::format("cannot give {} to {}", address, kVfio);
  const std::vector<machine::PciDevice> all = machine::pci_devices(machine.at("/"));
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.address == address; });
  if (found == all.end()) {
    return usage_error(what, "there is no such PCI function", "`warpline doctor` names those of the network");
  }
  if (!found->is_nic()) {
    return usage_error(what, fmt::format("its class is {}, and not a network's", found->kind),
                       "`warpline doctor` names those of the network");
  }
  Plan plan;
  if (found->vendor == kMellanox) {
    plan.notes.emplace_back("it stays with mlx5_core, which DPDK goes through");
    return plan;
  }
  for (const std::string& interface : interfaces_of(machine, address)) {
    WARPLINE_CHECK(check_unused(machine, what, interface));
  }
  if (!machine.exists(kFunctions / address / "iommu_group")) {
    if (!machine.read("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode").starts_with('Y')) {
      return environment_error(what, "there is no IOMMU",
                               "turn it on in the firmware and with intel_iommu=on or amd_iommu=on");
    }
    plan.notes.emplace_back("there is no IOMMU: it can write to all memory, and runs need CAP_SYS_RAWIO");
  }
  const auto mates = machine::iommu_group_mates(machine.at(kFunctions), address);
  if (const std::string others = machine::list_in_the_way(mates.value.value_or(std::vector<machine::GroupMate>{}));
      !others.empty()) {
    plan.notes.push_back(
        fmt::format("its IOMMU group has {}, too: it can be opened once that is given up as well", others));
  }
  if (!machine.exists(fmt::format("/sys/bus/pci/drivers/{}", kVfio))) {
    plan.beforehand.push_back(fmt::format("sudo modprobe {}", kVfio));
  }
  WARPLINE_CHECK(add(machine, {ChangeKind::driver, kFunctions / address, kVfio}, plan));
  return plan;
}

Result<Plan> plan_hugepages(const MachineFiles& machine, const HugepageRequest& request) {
  const std::uint64_t kibibytes = request.page.value >> 10;
  const fs::path node = fmt::format("/sys/devices/system/node/node{}", request.node.value_or(0));
  const std::string what = fmt::format("cannot reserve huge pages of {} KiB", kibibytes);
  if (request.node && !machine.exists(node)) {
    return usage_error(what, fmt::format("there is no NUMA node {}", *request.node),
                       "`warpline doctor` names those of this machine");
  }
  const fs::path sizes = request.node ? node / "hugepages" : fs::path("/sys/kernel/mm/hugepages");
  const fs::path pool = sizes / fmt::format("hugepages-{}kB", kibibytes);
  if (!machine.exists(pool)) {
    const std::vector<std::string> names = names_in(machine, sizes);
    return usage_error(what,
                       names.empty() ? "the kernel has none" : fmt::format("there are {}", fmt::join(names, ", ")),
                       "--page takes another size");
  }
  const auto pages = [&](const char* name) -> std::uint64_t {
    return std::strtoull(machine.read(pool / name).c_str(), nullptr, 10);
  };
  const std::uint64_t reserved = pages("nr_hugepages");
  const std::uint64_t free = std::min(pages("free_hugepages"), reserved);
  const std::uint64_t wanted = (request.memory.value + request.page.value - 1) / request.page.value;
  Plan plan;
  if (free >= wanted) return plan;
  plan.changes.push_back({ChangeKind::number, pool / "nr_hugepages", std::to_string(reserved - free + wanted)});
  plan.notes.emplace_back("they are gone when the machine starts again; to keep them: hugepages=N on its command line");
  return plan;
}

Result<Plan> plan_user(const MachineFiles& machine, const std::string& name) {
  const std::string what = fmt::format("cannot set up user '{}'", name);
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  };
  const passwd* const entry =
      name.empty() || !std::all_of(name.begin(), name.end(), fits) ? nullptr : ::getpwnam(name.c_str());
  if (entry == nullptr) return usage_error(what, "there is none of that name", "`getent passwd` names those there are");
  if (entry->pw_uid == 0) return usage_error(what, "root may do all that already", "name an ordinary user");
  const std::string rule = fmt::format("SUBSYSTEM==\"vfio\", OWNER=\"{}\", MODE=\"0600\"\n", name);
  if (const std::string there = machine.read(kUdevRules); !there.empty() && there != rule) {
    return usage_error(what, fmt::format("{} gives VFIO to another", kUdevRules), "sudo warpline setup user --undo");
  }
  Plan plan;
  WARPLINE_CHECK(add(machine, {ChangeKind::file, kUdevRules, rule}, plan));
  WARPLINE_CHECK(add(machine, {ChangeKind::file, kLimits, fmt::format("{} - memlock unlimited\n", name)}, plan));
  for (const std::string& group : names_in(machine, "/dev/vfio")) {
    if (std::isdigit(static_cast<unsigned char>(group[0])) == 0) continue;  // "vfio" is everybody's
    WARPLINE_CHECK(add(machine, {ChangeKind::owner, "/dev/vfio/" + group, std::to_string(entry->pw_uid)}, plan));
  }
  if (!plan.changes.empty()) plan.notes.emplace_back("the limit of locked memory is that of the next login");
  return plan;
}

}  // namespace warpline::setup
