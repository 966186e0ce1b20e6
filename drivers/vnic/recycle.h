// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device.h"

// Sent mbufs become receive buffers without the mempool between: DPDK's rte_eth_recycle_mbufs where it exists (23.11),
// and the same as a call of our own for all. C linkage, so that a program that loads the driver as a plugin finds it
// with dlsym.
extern "C" {

/// Posts what the device has sent off `tx_queue` as buffers of `rx_queue`. Both are polled by the caller's lcore, and
/// their ports are started net_vnic ports; one segment a frame is received there. Returns the mbufs recycled.
std::uint16_t rte_net_vnic_recycle_mbufs(std::uint16_t rx_port, std::uint16_t rx_queue, std::uint16_t tx_port,
                                         std::uint16_t tx_queue);

}  // extern "C"

namespace warpline::vnic {

/// DPDK's three hooks, all or none: what ethdev asks the port, and what it calls in a poll.
void offer_recycling(eth_dev_ops& ops);
void install_recycling(rte_eth_dev* dev);

}  // namespace warpline::vnic
