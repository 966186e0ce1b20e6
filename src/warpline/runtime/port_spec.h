// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "warpline/base/result.h"

namespace warpline::runtime {

/// A port's spec in its parts.
struct PortSpec {
  std::string device;                                 ///< "0000:01:00.0" or "net_pcap0"
  std::string driver;                                 ///< of a vdev, "net_pcap"; empty for PCI
  std::multimap<std::string, std::string> arguments;  ///< "rx_pcap" -> "a.pcap"
  bool pci = false;
};

/// Usage error when `text` is neither a PCI address nor a vdev string.
[[nodiscard]] Result<PortSpec> parse_port_spec(const std::string& text);

/// Returns whether two specs are of one device, however its address is written and whatever is asked of it.
[[nodiscard]] bool same_device(const std::string& one, const std::string& other);

/// The NUMA node of the device, or kAnyNode where it has none (vdevs, machines of one node). Needs no EAL.
[[nodiscard]] int port_node(const std::string& spec, const std::filesystem::path& sys = "/sys");

/// What can be said to be wrong before DPDK is asked: a network interface that is not there, a pcap that cannot be
/// read, a PCI device that does not exist or has no driver.
[[nodiscard]] Result<void> check_port_spec(const std::string& spec, const std::filesystem::path& sys = "/sys");

/// `spec` for packets in memory that the CPU does not reach: a ConnectX, or a software NIC with its manners, is told
/// not to copy short frames itself, unless the spec says something about that. Any other stays as it is.
[[nodiscard]] std::string without_inlining(const std::string& spec, const std::filesystem::path& sys = "/sys");

/// True of the kernel drivers that DPDK works through (vfio, uio) or beside (the bifurcated ones).
[[nodiscard]] bool works_with_dpdk(const std::string& kernel_driver);

/// "did you mean net_null0?", for a driver that DPDK does not know.
[[nodiscard]] std::string vdev_hint(const std::string& driver);

}  // namespace warpline::runtime
