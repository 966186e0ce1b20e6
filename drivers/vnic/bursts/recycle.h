// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ethdev_driver.h>

#include "warpline/vnic/recycle_ops.h"

// Sent mbufs become receive buffers without the mempool between: DPDK's rte_eth_recycle_mbufs where it exists (23.11),
// and the same as a call of our own for all (recycle_ops.h).
namespace warpline::vnic {

/// DPDK's three hooks, all or none: what ethdev asks the port, and what it calls in a poll.
void offer_recycling(eth_dev_ops& ops);
void install_recycling(rte_eth_dev* dev);

}  // namespace warpline::vnic
