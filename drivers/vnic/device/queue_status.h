// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include <rte_version.h>

#include "vnic/device/device.h"

// What applications may ask about queues.
namespace warpline::vnic {

// For the queue's owner, with the RxQueue or TxQueue.
std::invoke_result_t<eth_rx_queue_count_t, void*> rx_queue_count(void* queue);
int rx_descriptor_status(void* queue, std::uint16_t offset);
int tx_descriptor_status(void* queue, std::uint16_t offset);
/// Frees up to `most` sent mbufs, all for 0. Returns how many.
int tx_done_cleanup(void* queue, std::uint32_t most);

// For the control thread.
void rxq_info_get(rte_eth_dev* dev, std::uint16_t id, rte_eth_rxq_info* info);
void txq_info_get(rte_eth_dev* dev, std::uint16_t id, rte_eth_txq_info* info);
int rx_burst_mode_get(rte_eth_dev* dev, std::uint16_t id, rte_eth_burst_mode* mode);
int tx_burst_mode_get(rte_eth_dev* dev, std::uint16_t id, rte_eth_burst_mode* mode);

/// Packet types are told unless the application wants none: `mask` 0.
int packet_types_set(rte_eth_dev* dev, std::uint32_t mask);

// Since DPDK 24.03 the length comes apart from RTE_PTYPE_UNKNOWN at the end.
#if RTE_VERSION >= RTE_VERSION_NUM(24, 3, 0, 0)
const std::uint32_t* supported_packet_types(rte_eth_dev* dev, std::size_t* count);
const std::uint32_t* splittable_headers(rte_eth_dev* dev, std::size_t* count);
#else
const std::uint32_t* supported_packet_types(rte_eth_dev* dev);
const std::uint32_t* splittable_headers(rte_eth_dev* dev);
#endif

}  // namespace warpline::vnic
