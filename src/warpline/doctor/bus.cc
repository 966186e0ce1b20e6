// SPDX-License-Identifier: Apache-2.0
#include "warpline/doctor/bus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <system_error>
#include <utility>

#include "warpline/base/files/read_file.h"
#include "warpline/gpu/pci_link.h"
#include "warpline/machine/pci_devices.h"
#include "warpline/runtime/port_spec.h"

namespace warpline::doctor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMellanox = "0x15b3";
constexpr const char* kAsRoot = "run doctor as root, on the host rather than in a virtual machine or container";

/// A GPU of the bus.
struct Gpu {
  std::string pci;
  Bytes memory{0};        ///< zero: CUDA does not tell
  bool gpudirect = true;  ///< it opens its memory to NICs, as far as is known
};

Check not_known(std::string name, const std::string& why, std::string fix) {
  return {.name = std::move(name),
          .health = Health::warning,
          .found = fmt::format("not known: {}", why),
          .fix = std::move(fix)};
}

Check of_express_only(std::string name) {
  return {.name = std::move(name), .found = "none: it is not a PCI Express function", .fix = {}};
}

bool is_conventional(const machine::Told<machine::RequestControl>& control) {
  return control.value && control.value->max_read_bytes == 0;
}

/// Its driver in the kernel stays, and DPDK goes through it.
bool is_shared_with_kernel(const machine::PciDevice& nic) {
  return nic.driver.starts_with("mlx") || nic.driver == "mana";
}

Check check_driver(const machine::PciDevice& nic) {
  Check check{.name = "driver", .found = nic.driver.empty() ? "none" : nic.driver, .fix = {}};
  if (is_shared_with_kernel(nic)) {
    check.found += ", which DPDK goes through";
  } else if (nic.vendor == kMellanox && !nic.driver.empty()) {
    check.health = Health::warning;
    check.found += ": DPDK's driver of this NIC goes through mlx5_core";
    check.fix = fmt::format("sudo dpdk-devbind.py --bind=mlx5_core {}", nic.address);
  } else if (runtime::works_with_dpdk(nic.driver)) {
    check.found += ", for DPDK";
  } else {
    check.health = Health::warning;
    check.found += nic.driver.empty() ? ": nobody has it" : ": the kernel has it";
    check.fix = nic.vendor == kMellanox ? "sudo modprobe mlx5_core"
                                        : fmt::format("sudo warpline setup nic --pci {} --apply{}", nic.address,
                                                      nic.driver.empty() ? "" : ", which takes it from the kernel");
  }
  return check;
}

std::string describe_link(const gpu::PciLink& link) {
  return link.generation() == 0 ? fmt::format("{} GT/s x{}", link.gigatransfers, link.lanes)
                                : fmt::format("Gen{} x{}", link.generation(), link.lanes);
}

/// The link of the card, and those of the bridges before it.
Check check_link(const machine::Told<machine::RequestControl>& control, const std::string& physical,
                 const fs::path& root) {
  if (is_conventional(control)) return of_express_only("pcie link");
  const auto link_of = [&](const std::string& address) { return gpu::read_pci_facts(address, root / "sys"); };
  const gpu::PciFacts card = link_of(physical);
  const gpu::PciLink &now = card.link_now, &most = card.link_most;
  Check check{.name = "pcie link", .found = {}, .fix = {}};
  if (now.lanes == 0 || most.lanes == 0 || now.gigatransfers == 0) {
    return not_known("pcie link", "sysfs shows no speed or width of its link, as in a virtual machine", kAsRoot);
  }
  check.found = fmt::format("{}, {:.0f} Gbit/s each way", describe_link(now), now.gigabit_per_s());
  if (now.lanes < most.lanes || now.gigatransfers < most.gigatransfers) {
    check.health = Health::warning;
    check.found += fmt::format(": the card has {}", describe_link(most));
    check.fix = fmt::format("seat it in a slot of {}, and see what the firmware gives the slot (lanes, speed, ASPM)",
                            describe_link(most));
    return check;
  }
  for (const std::string& bridge : machine::pci_place(root, physical).bridges) {
    const gpu::PciLink before = link_of(bridge).link_now;
    const bool narrows = before.lanes != 0 && before.gigabit_per_s() < 0.99 * now.gigabit_per_s();
    if (!narrows) continue;
    check.health = Health::warning;
    check.found += fmt::format(": bridge {} before it has {}", bridge, describe_link(before));
    check.fix = "seat it in a slot nearer to the CPU";
    return check;
  }
  return check;
}

/// A command that writes bits of Device Control.
std::string set_control(const std::string& address, unsigned value, unsigned mask) {
  return fmt::format("sudo setpci -s {} CAP_EXP+8.w={:04x}:{:04x}", address, value, mask);
}

Check check_read_requests(const machine::Told<machine::RequestControl>& control, const std::string& physical,
                          bool is_mellanox) {
  if (!control.value) return not_known("read requests", control.why_not, kAsRoot);
  if (is_conventional(control)) return of_express_only("read requests");
  Check check{
      .name = "read requests", .found = fmt::format("MaxReadReq {} bytes", control.value->max_read_bytes), .fix = {}};
  // As DPDK's guide of mlx5 asks; those of other drivers ask for nothing.
  constexpr unsigned kLeast = 1024;
  if (is_mellanox && control.value->max_read_bytes < kLeast) {
    check.health = Health::warning;
    check.found += fmt::format(": DPDK's guide of mlx5 asks for {}", kLeast);
    check.fix = set_control(physical, 0x3000, 0x7000);
  }
  return check;
}

Check check_ordering(const machine::Told<machine::RequestControl>& control, const std::string& physical,
                     bool is_mellanox) {
  if (!control.value) return not_known("relaxed ordering", control.why_not, kAsRoot);
  if (is_conventional(control)) return of_express_only("relaxed ordering");
  Check check{.name = "relaxed ordering", .found = "allowed", .fix = {}};
  if (control.value->relaxed_ordering) return check;
  check.found = "forbidden";
  // Others do not ask for it.
  if (is_mellanox) {
    check.health = Health::warning;
    check.found += ": writes to memory wait for each other";
    check.fix = set_control(physical, 0x10, 0x10);
  }
  return check;
}

Check check_group(const machine::PciDevice& nic, const fs::path& root) {
  const auto mates = machine::iommu_group_mates(root / "sys/bus/pci/devices", nic.address);
  Check check{.name = "iommu group", .found = {}, .fix = {}};
  if (is_shared_with_kernel(nic)) {
    check.found = "does not matter: the kernel's driver keeps it";
    return check;
  }
  if (!mates.value) {
    return not_known("iommu group", mates.why_not,
                     "turn the IOMMU on in the firmware and with intel_iommu=on or amd_iommu=on; without one, "
                     "sudo modprobe vfio enable_unsafe_noiommu_mode=1");
  }
  std::vector<std::string> addresses;
  std::vector<std::string> in_the_way;
  for (const machine::GroupMate& mate : *mates.value) {
    addresses.push_back(mate.address);
    if (mate.in_the_way()) in_the_way.push_back(mate.address);
  }
  check.found = addresses.empty() ? "of its own" : fmt::format("shared with {}", fmt::join(addresses, ", "));
  if (in_the_way.empty()) return check;
  check.health = Health::warning;
  check.found += ": vfio gives it to no program while the kernel has " + machine::list_in_the_way(*mates.value);
  check.fix = fmt::format("sudo dpdk-devbind.py --bind=vfio-pci {}, or another slot", fmt::join(in_the_way, " "));
  return check;
}

Check check_topology(machine::PciDistance distance, const machine::PciPlace& port, const machine::PciPlace& gpu) {
  // By PciDistance.
  constexpr std::array kMeanings = {"one PCIe switch at most", "several PCIe switches", "a host bridge, the CPU",
                                    "host bridges of one NUMA node", "the link between NUMA nodes"};
  if (distance == machine::PciDistance::unknown) {
    const bool lacks_way = port.host_bridge.empty() || gpu.host_bridge.empty();
    return not_known("topology", lacks_way ? "sysfs does not show where both are" : "the firmware tells no NUMA node",
                     lacks_way ? kAsRoot : "turn on NUMA in the firmware");
  }
  Check check{.name = "topology",
              .found = fmt::format("{}: {}", machine::name(distance), kMeanings.at(static_cast<std::size_t>(distance))),
              .fix = {}};
  if (distance == machine::PciDistance::pix || distance == machine::PciDistance::pxb) return check;
  check.health = Health::warning;
  check.fix = "put both under one PCIe switch, or use -m pinned";
  return check;
}

Check check_access_control(const std::vector<std::string>& bridges, const fs::path& root) {
  Check check{.name = "acs", .found = "no bridge between them redirects", .fix = {}};
  if (bridges.empty()) {
    check.found = "does not matter: no switch is between them";
    return check;
  }
  std::vector<std::string> redirecting;
  std::string why_not;
  for (const std::string& bridge : bridges) {
    const machine::Told<bool> redirects = machine::redirects_peers(machine::read_config_space(root, bridge));
    if (redirects.value.value_or(false)) redirecting.push_back(bridge);
    if (!redirects.value) why_not = fmt::format("{}: {}", bridge, redirects.why_not);
  }
  if (redirecting.empty()) return why_not.empty() ? check : not_known("acs", why_not, kAsRoot);
  std::vector<std::string> commands;
  for (const std::string& bridge : redirecting) {
    commands.push_back(fmt::format("sudo setpci -s {} ECAP_ACS+6.w=0000:000c", bridge));
  }
  check.health = Health::warning;
  check.found = fmt::format("{} send{} what one writes to the other through the CPU", fmt::join(redirecting, ", "),
                            redirecting.size() == 1 ? "s" : "");
  check.fix =
      fmt::format("{} (or ACS off in the firmware), where no virtual machine has either", fmt::join(commands, " && "));
  return check;
}

/// What NICs see of the GPU's memory.
Check check_bar(const Gpu& gpu, const fs::path& root) {
  constexpr Bytes kMebibytes256{256ULL << 20};  // without Resizable BAR
  const machine::Told<Bytes> bar = machine::largest_memory_region(root, gpu.pci);
  if (!bar.value) return not_known("bar1", bar.why_not, kAsRoot);
  Check check{.name = "bar1", .found = fmt::format("{} MiB", bar.value->value / kMebibyte), .fix = {}};
  if (gpu.memory.value != 0) check.found += fmt::format(" of {} MiB of memory", gpu.memory.value / kMebibyte);
  if (bar.value->value < gpu.memory.value || *bar.value <= kMebibytes256) {
    check.health = Health::warning;
    check.found += ": NICs reach no more than that at a time";
    check.fix = "turn on Above 4G Decoding and Resizable BAR in the firmware";
  }
  return check;
}

/// How the NIC would reach the GPU's memory.
Check check_direct_access(const machine::PciDevice& nic, const Gpu& gpu, const fs::path& root) {
  std::error_code ignored;
  const bool has_driver = fs::exists(root / "proc/driver/nvidia/version", ignored);
  const bool is_open = first_line(root / "proc/driver/nvidia/version").find("Open Kernel Module") != std::string::npos;
  const bool has_peermem = fs::exists(root / "sys/module/nvidia_peermem", ignored);
  Check check{.name = "direct access", .health = Health::warning, .found = {}, .fix = "use -m pinned"};
  if (nic.vendor != kMellanox) {
    check.found = "DPDK's driver of this NIC reaches no GPU memory";
  } else if (!gpu.gpudirect) {
    check.found = "the GPU does not open its memory to NICs";
    check.fix = "use -m pinned, or a data-center or professional GPU";
  } else if (has_peermem) {
    check.health = Health::ok;
    check.found = "nvidia-peermem loaded";
    check.fix.clear();
  } else if (!has_driver) {
    check = not_known("direct access", "NVIDIA's kernel driver is not loaded", "sudo modprobe nvidia");
  } else {
    check.found = fmt::format("nvidia-peermem not loaded{}",
                              is_open ? "; dma-buf, which the kernel's driver has, is not used by DPDK" : "");
    check.fix = "sudo modprobe nvidia-peermem";
  }
  return check;
}

PortAnswers examine_port(const machine::PciDevice& nic, const fs::path& root) {
  const std::string physical = machine::physical_function(root, nic.address);
  const auto control = machine::request_control(machine::read_config_space(root, physical));
  return {.pci = nic.address,
          .is_for_dpdk = runtime::works_with_dpdk(nic.driver),
          .answers = {check_driver(nic), check_link(control, physical, root),
                      check_read_requests(control, physical, nic.vendor == kMellanox),
                      check_ordering(control, physical, nic.vendor == kMellanox), check_group(nic, root)}};
}

PairAnswers examine_pair(const machine::PciDevice& nic, const Gpu& gpu, const fs::path& root) {
  const machine::PciPlace port = machine::pci_place(root, nic.address);
  const machine::PciPlace card = machine::pci_place(root, gpu.pci);
  const machine::PciDistance distance = machine::distance_between(port, card);
  return {.port = nic.address,
          .gpu = gpu.pci,
          .distance = distance,
          .answers = {check_topology(distance, port, card),
                      check_access_control(machine::bridges_between(port, card), root), check_bar(gpu, root),
                      check_direct_access(nic, gpu, root)}};
}

std::vector<Gpu> gpus_of_bus(const std::vector<gpu::GpuFacts>& known, const std::vector<machine::PciDevice>& devices) {
  std::vector<Gpu> gpus;
  for (const gpu::GpuFacts& gpu : known) gpus.push_back({gpu.pci, gpu.memory, gpu.gpudirect});
  for (const machine::PciDevice& device : devices) {
    const bool is_known = std::ranges::find(gpus, device.address, &Gpu::pci) != gpus.end();
    if (device.is_gpu() && !is_known) gpus.push_back({.pci = device.address});
  }
  return gpus;
}

}  // namespace

BusAnswers examine_bus(const std::vector<gpu::GpuFacts>& gpus, const fs::path& root) {
  const std::vector<machine::PciDevice> devices = machine::pci_devices(root);
  const std::vector<Gpu> cards = gpus_of_bus(gpus, devices);
  BusAnswers bus;
  for (const machine::PciDevice& nic : devices) {
    if (!nic.is_nic()) continue;
    bus.ports.push_back(examine_port(nic, root));
    std::vector<PairAnswers> pairs;
    for (const Gpu& gpu : cards) pairs.push_back(examine_pair(nic, gpu, root));
    std::ranges::sort(pairs, {}, [](const PairAnswers& pair) { return std::pair(pair.distance, pair.gpu); });
    std::ranges::move(pairs, std::back_inserter(bus.pairs));
  }
  return bus;
}

}  // namespace warpline::doctor
