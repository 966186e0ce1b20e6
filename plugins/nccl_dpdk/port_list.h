// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nccl/settings.h"
#include "warpline/base/address.h"
#include "warpline/base/result.h"

namespace warpline::nccl {

/// A DPDK port as the environment names it.
struct PortChoice {
  std::string spec;            ///< PCI address or vdev string, as Port::open() takes it
  InterfaceAddress address{};  ///< the port's own
  bool local = false;          ///< memory of this machine: both ends of the wire are here
  std::uint16_t mtu = 1500;    ///< bytes of IP
  /// What the driver is told of it: net_memif knows no longer one than Ethernet's, and carries what its buffers hold.
  std::uint16_t device_mtu = 1500;
  std::uint16_t ring = 1024;  ///< descriptors a queue
  bool waits = false;         ///< it can be opened when the process at its other end has opened its own
};

/// All ports that the environment names.
struct PortList {
  std::vector<PortChoice> ports;
  std::optional<IpAddress> gateway{};  ///< next hop to peers that are on no port's link
};

/// Reads WARPLINE_NCCL_DPDK_PORT, _ADDRESS, _MTU and _GATEWAY. A process of a local rank (LOCAL_RANK, by torchrun)
/// takes the variable with `_` and its rank behind the name, if there is one. Usage error: a value that makes no sense.
[[nodiscard]] Result<PortList> read_port_list(const char* (*get)(const char* name));

}  // namespace warpline::nccl
