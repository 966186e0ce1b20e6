// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rte_version.h>

#include "vnic/device/device.h"

// Statistics of a port, as ethdev asks for them. The control thread's.
namespace warpline::vnic {

/// Every counter of the port since probe, queues that are gone included.
[[nodiscard]] std::array<std::uint64_t, kCounts> total_counts(const Device& device);

#if RTE_VERSION >= RTE_VERSION_NUM(25, 11, 0, 0)
int stats_get(rte_eth_dev* dev, rte_eth_stats* stats, eth_queue_stats* queues);
#else
int stats_get(rte_eth_dev* dev, rte_eth_stats* stats);
#endif
int stats_reset(rte_eth_dev* dev);

/// One for each Count, of its name. With wire=static and no copy engine, where nobody but the program writes to the
/// buffers, one more, which no reset touches: `rx_parity`, the XOR of buffer_mark() (base/buffer_mark.h) of the first
/// mbuf of every frame received.
int xstats_get(rte_eth_dev* dev, rte_eth_xstat* xstats, unsigned count);
int xstats_get_names(rte_eth_dev* dev, rte_eth_xstat_name* names, unsigned count);

}  // namespace warpline::vnic
