// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/memory/pool_settings.h"
#include "warpline/port/port.h"
#include "warpline/port/port_settings.h"

namespace warpline::datapath {

/// What can be known of a run's ports before DPDK starts.
struct RunInputs {
  std::vector<std::string> specs;  ///< of each port
  std::vector<int> nodes;          ///< NUMA node of each port
  std::uint64_t recorded = 0;      ///< packets that all ports replay from files, once, and no more comes; 0: no bound

  /// The number of packets after which a run is done that is to receive `asked`; 0: no bound.
  [[nodiscard]] std::uint64_t bound(std::uint64_t asked) const;

  /// Whether all that a run is to receive, or can, is among the `received` packets or was lost by one of `ports`.
  /// `packets` is bound()'s. Any thread.
  [[nodiscard]] bool used_up(std::uint64_t packets, std::uint64_t received, std::span<const port::Port> ports) const;
};

/// What a port is opened by, where packets lie in such memory.
[[nodiscard]] std::string spec_in_force(const std::string& spec, memory::MemoryKind payload);

/// Looks at the ports. Usage and environment errors say which spec or file is wrong.
[[nodiscard]] Result<RunInputs> look_at_inputs(std::span<const port::PortSettings> ports,
                                               memory::MemoryKind payload = memory::MemoryKind::host);

}  // namespace warpline::datapath
