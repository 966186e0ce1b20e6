// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rte_eal.h>

namespace warpline::runtime {

/// Returns true if devices reach memory by its physical addresses, which only a privileged process can find out. DPDK
/// runs.
[[nodiscard]] inline bool uses_physical_addresses() { return rte_eal_iova_mode() == RTE_IOVA_PA; }

}  // namespace warpline::runtime
