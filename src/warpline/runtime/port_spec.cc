// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/port_spec.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <regex>
#include <system_error>
#include <vector>

#include "warpline/base/nearest.h"
#include "warpline/machine/pci_place.h"
#include "warpline/machine/privileges.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/runtime/pcap_file.h"

namespace warpline::runtime {
namespace {

namespace fs = std::filesystem;

/// PMDs that take a vdev, for "did you mean". DPDK has no list to ask.
const std::vector<std::string> kVdevDrivers = {"net_af_packet",   "net_af_xdp", "net_bonding",     "net_memif",
                                               "net_null",        "net_pcap",   "net_ring",        "net_tap",
                                               "net_vdev_netvsc", "net_vhost",  "net_virtio_user", "net_vnic"};

constexpr const char* kHowToBePrivileged =
    "run as root, or `sudo setcap cap_net_raw,cap_net_admin+ep $(command -v warpline)`";

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string listed(const std::vector<std::string>& names, const char* none) {
  return names.empty() ? none : fmt::format("{}", fmt::join(names, ", "));
}

/// sysfs shows the network namespace that it was mounted in, which need not be this process's: so the kernel is asked,
/// unless `sys` is made up.
std::vector<std::string> interfaces(const fs::path& sys) {
  if (sys != "/sys") return names_in(sys / "class/net");
  std::vector<std::string> names;
  const std::unique_ptr<struct if_nameindex[], void (*)(struct if_nameindex*)> known(if_nameindex(), if_freenameindex);
  for (std::size_t i = 0; known && known[i].if_index != 0; ++i) names.emplace_back(known[i].if_name);
  std::sort(names.begin(), names.end());
  return names;
}

Result<void> check_interface(const std::string& text, const std::string& interface, const fs::path& sys) {
  const std::vector<std::string> known = interfaces(sys);
  if (std::find(known.begin(), known.end(), interface) != known.end()) return {};
  return usage_error(fmt::format("port {}", text), fmt::format("there is no network interface \"{}\"", interface),
                     fmt::format("there are: {}", listed(known, "none")));
}

Result<void> check_packet_socket(const std::string& text) {
  const int socket_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (socket_fd >= 0) {
    close(socket_fd);
    return {};
  }
  return environment_error(fmt::format("port {}", text), fmt::format("no packet socket: {}", std::strerror(errno)),
                           kHowToBePrivileged);
}

Result<void> check_tun(const std::string& text) {
  const int tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
  if (tun >= 0) {
    close(tun);
    if (machine::read_privileges().net_admin) return {};
    return environment_error(fmt::format("port {}", text), "making an interface needs CAP_NET_ADMIN",
                             kHowToBePrivileged);
  }
  return environment_error(fmt::format("port {}", text), fmt::format("/dev/net/tun: {}", std::strerror(errno)),
                           errno == ENOENT ? "load the driver: `sudo modprobe tun`" : kHowToBePrivileged);
}

Result<void> check_output_file(const std::string& text, const std::string& path) {
  std::error_code problem;
  const fs::path parent = fs::absolute(path, problem).parent_path();
  const bool is_folder = fs::is_directory(parent, problem);
  if (!is_folder && (problem == std::errc::permission_denied || problem == std::errc::operation_not_permitted)) {
    return environment_error(fmt::format("port {}", text), fmt::format("{}: {}", path, problem.message()),
                             "write to a folder of your own");
  }
  if (!is_folder) {
    return usage_error(fmt::format("port {}", text), fmt::format("there is no folder {}", parent.string()),
                       fmt::format("make it: `mkdir -p {}`", parent.string()));
  }
  if (access(parent.c_str(), W_OK) != 0 && access(path.c_str(), W_OK) != 0) {
    return environment_error(fmt::format("port {}", text), fmt::format("{}: {}", path, std::strerror(errno)),
                             "write to a folder of your own");
  }
  return {};
}

Result<void> check_vdev(const std::string& text, const PortSpec& spec, const fs::path& sys) {
  for (const auto& [key, value] : spec.arguments) {
    if (key == "rx_pcap") {
      const Result<PcapFacts> facts = check_pcap(value);
      if (!facts.ok()) return facts.error();
    }
    if (key == "tx_pcap") WARPLINE_CHECK(check_output_file(text, value));
    const bool is_interface = key == "iface" || key == "rx_iface" || key == "rx_iface_in" || key == "tx_iface";
    if (is_interface && spec.driver != "net_tap" && spec.driver != "net_tun" && spec.driver != "net_virtio_user" &&
        spec.driver != "net_vhost") {
      WARPLINE_CHECK(check_interface(text, value, sys));
      WARPLINE_CHECK(check_packet_socket(text));
    }
    if (key == "remote" && spec.driver == "net_tap") WARPLINE_CHECK(check_interface(text, value, sys));
  }
  const bool needs_interface = spec.driver == "net_af_packet" || spec.driver == "net_af_xdp";
  if (needs_interface && !spec.arguments.contains("iface")) {
    return usage_error(fmt::format("port {}", text), "it names no interface",
                       fmt::format("write {},iface=NAME; there are: {}", spec.device, listed(interfaces(sys), "none")));
  }
  if (spec.driver == "net_tap" || spec.driver == "net_tun") WARPLINE_CHECK(check_tun(text));
  return {};
}

Result<void> check_pci(const std::string& text, const PortSpec& spec, const fs::path& sys) {
  const std::string what = fmt::format("port {}", text);
  const fs::path device = sys / "bus/pci/devices" / spec.device;
  std::error_code ignored;
  if (!fs::exists(device, ignored)) {
    return usage_error(what, "there is no such PCI device", "`lspci -D | grep -i net` lists the network devices");
  }
  const fs::path driver = fs::read_symlink(device / "driver", ignored).filename();
  if (!works_with_dpdk(driver)) {
    return environment_error(
        what, driver.empty() ? "no driver has it" : fmt::format("the kernel's driver {} has it", driver.string()),
        fmt::format("`sudo dpdk-devbind.py --bind=vfio-pci {}`", spec.device));
  }
  const fs::path group = fs::read_symlink(device / "iommu_group", ignored).filename();
  const fs::path node = fs::path("/dev/vfio") / group;
  if (driver == "vfio-pci" && !group.empty() && access(node.c_str(), R_OK | W_OK) != 0) {
    return environment_error(what, fmt::format("{}: {}", node.string(), std::strerror(errno)),
                             fmt::format("`sudo chown $USER {}`, or run as root", node.string()));
  }
  const auto mates = machine::iommu_group_mates(device.parent_path(), spec.device);
  const std::string others = machine::list_in_the_way(mates.value.value_or(std::vector<machine::GroupMate>{}));
  if (driver == "vfio-pci" && !others.empty()) {
    return environment_error(
        what,
        fmt::format("its IOMMU group has {}, too, and vfio gives it to no program while the kernel has that", others),
        "give that up as well, `sudo warpline setup nic --pci ADDRESS --apply`, or use another slot");
  }
  return {};
}

}  // namespace

bool works_with_dpdk(const std::string& kernel_driver) {
  static const std::vector<std::string> drivers = {"vfio-pci",  "uio_pci_generic", "igb_uio",
                                                   "mlx5_core", "mlx4_core",       "mana"};
  return std::find(drivers.begin(), drivers.end(), kernel_driver) != drivers.end();
}

Result<PortSpec> parse_port_spec(const std::string& text) {
  static const std::regex pci_address("(([0-9a-fA-F]{4,8}):)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\\.[0-7]");
  static const std::regex vdev_name("(net_[a-z0-9_]*[a-z_])[0-9]+");
  PortSpec spec;
  const std::size_t comma = text.find(',');
  spec.device = text.substr(0, comma);
  for (std::size_t at = comma; at != std::string::npos;) {
    const std::size_t next = text.find(',', at + 1);
    const std::string argument = text.substr(at + 1, next == std::string::npos ? next : next - at - 1);
    const std::size_t equals = argument.find('=');
    if (argument.empty() || equals == 0) {
      return usage_error(fmt::format("port \"{}\"", text), "an argument has no name", "write NAME,key=value,...");
    }
    spec.arguments.emplace(argument.substr(0, equals), equals == std::string::npos ? "" : argument.substr(equals + 1));
    at = next;
  }
  std::smatch match;
  if (std::regex_match(spec.device, match, pci_address)) {
    spec.pci = true;
    if (!match[1].matched) spec.device = "0000:" + spec.device;
    std::transform(spec.device.begin(), spec.device.end(), spec.device.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return spec;
  }
  if (std::regex_match(spec.device, match, vdev_name)) {
    spec.driver = match[1];
    return spec;
  }
  std::string fix = "give a PCI address such as 0000:01:00.0, or a vdev such as net_af_packet0,iface=eth1";
  if (spec.device.starts_with("net_")) {
    fix = fmt::format("a vdev's name is its driver and a number: {}0", nearest(spec.device, kVdevDrivers));
  }
  return usage_error(fmt::format("port \"{}\"", text), "neither a PCI address nor a vdev", fix);
}

bool same_device(const std::string& one, const std::string& other) {
  const auto device = [](const std::string& text) {
    const Result<PortSpec> spec = parse_port_spec(text);
    return spec.ok() ? spec->device : text.substr(0, text.find(','));
  };
  return device(one) == device(other);
}

int port_node(const std::string& text, const fs::path& sys) {
  const Result<PortSpec> spec = parse_port_spec(text);
  if (!spec.ok()) return kAnyNode;
  fs::path file = sys / "bus/pci/devices" / spec->device / "numa_node";
  if (!spec->pci) {
    const auto interface = spec->arguments.find("iface");
    if (interface == spec->arguments.end()) return kAnyNode;
    file = sys / "class/net" / interface->second / "device/numa_node";
  }
  int node = kAnyNode;
  std::ifstream stream(file);
  return stream >> node && node >= 0 ? node : kAnyNode;
}

Result<void> check_port_spec(const std::string& text, const fs::path& sys) {
  WARPLINE_TRY(const PortSpec spec, parse_port_spec(text));
  return spec.pci ? check_pci(text, spec, sys) : check_vdev(text, spec, sys);
}

std::string without_inlining(const std::string& text, const fs::path& sys) {
  constexpr const char* kArgument = "txq_inline_max";
  const Result<PortSpec> spec = parse_port_spec(text);
  if (!spec.ok() || spec->arguments.contains(kArgument)) return text;
  std::string vendor;
  if (spec->pci) std::ifstream(sys / "bus/pci/devices" / spec->device / "vendor") >> vendor;
  const auto persona = spec->arguments.find("persona");
  const bool is_vnic = spec->driver == "net_vnic" && persona != spec->arguments.end();
  const bool inlines = vendor == "0x15b3" || (is_vnic && persona->second == "mlx5");
  return inlines ? fmt::format("{},{}=0", text, kArgument) : text;
}

std::string vdev_hint(const std::string& driver) {
  return fmt::format("did you mean {}0?", nearest(driver, kVdevDrivers));
}

}  // namespace warpline::runtime
