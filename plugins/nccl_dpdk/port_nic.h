// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nccl/nic.h"

namespace warpline::nccl {

/// The DPDK ports that the environment names, each a NIC with a queue pair a lane. Starts DPDK and opens the ports,
/// both to the end of the process. Usage error: the environment makes no sense. Environment error: DPDK does not start,
/// or a port cannot be opened.
[[nodiscard]] Result<Nics> find_port_nics(const Settings& settings);

}  // namespace warpline::nccl
