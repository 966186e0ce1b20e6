// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// How the buffers of sent frames come back: what DPDK has no call for. C linkage, so that a program that loads the
// driver as a plugin finds it with dlsym.
extern "C" {

/// How a transmit queue frees what the device has sent.
enum rte_net_vnic_tx_free : std::uint32_t {
  /// Each mbuf is looked at; those of one pool are gathered in an array and put there together.
  RTE_NET_VNIC_FREE_CHECKED,
  /// Each mbuf is looked at and written straight into the calling lcore's cache of its pool. Without an lcore or a
  /// cache, and for mbufs of a second pool in a batch, as CHECKED.
  RTE_NET_VNIC_FREE_CACHE,
};

/// Chooses it for a queue that was set up without RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE, which needs no look at any mbuf
/// and goes first. A queue that is set up anew begins with CHECKED. While nobody sends on the queue. 0, -ENODEV when
/// there is no such queue of a net_vnic port, -EINVAL.
int rte_net_vnic_set_tx_free(std::uint16_t port_id, std::uint16_t queue, rte_net_vnic_tx_free way);

/// Posts what the device has sent off `tx_queue` as buffers of `rx_queue`, as many whole batches of tx_rs_thresh as the
/// receive ring has room for. Both are polled by the caller's lcore, and their ports are net_vnic ports; one segment a
/// frame is received there. Mbufs of another pool, or that somebody else holds too, are freed instead. On a port or
/// queue that is not started nothing is done. Returns the mbufs recycled.
std::uint16_t rte_net_vnic_recycle_mbufs(std::uint16_t rx_port, std::uint16_t rx_queue, std::uint16_t tx_port,
                                         std::uint16_t tx_queue);

}  // extern "C"
