// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vnic/device/device.h"

// Set-up, start and stop of queues, as ethdev calls them. The control thread's; 0 or a negative errno.
namespace warpline::vnic {

int rx_queue_setup(rte_eth_dev* dev, std::uint16_t id, std::uint16_t descriptors, unsigned socket,
                   const rte_eth_rxconf* conf, rte_mempool* pool);
int tx_queue_setup(rte_eth_dev* dev, std::uint16_t id, std::uint16_t descriptors, unsigned socket,
                   const rte_eth_txconf* conf);
void rx_queue_release(rte_eth_dev* dev, std::uint16_t id);
void tx_queue_release(rte_eth_dev* dev, std::uint16_t id);

// While the port runs; ethdev's rule is that nobody polls a queue that is being started or stopped.
int rx_queue_start(rte_eth_dev* dev, std::uint16_t id);
int rx_queue_stop(rte_eth_dev* dev, std::uint16_t id);
int tx_queue_start(rte_eth_dev* dev, std::uint16_t id);
int tx_queue_stop(rte_eth_dev* dev, std::uint16_t id);

// Start or stop one queue. Frames that it holds when it stops are sent, or counted as rx_stopped.
int start_queue(Device& device, RxQueue& queue);
void stop_queue(Device& device, RxQueue& queue);
int start_queue(Device& device, TxQueue& queue);
void stop_queue(Device& device, TxQueue& queue);

/// Thresholds of a transmit queue: a 0 becomes the default that fits the ring. False, after a log line, when they
/// would let the ring stand still.
[[nodiscard]] bool tx_thresholds(std::uint16_t descriptors, std::uint16_t& rs_thresh, std::uint16_t& free_thresh);

}  // namespace warpline::vnic
