// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <rte_mbuf.h>

#include "vnic/rings/queue.h"

// The burst functions, as ethdev calls them: `queue` is an RxQueue or a TxQueue.
namespace warpline::vnic {

/// One buffer a frame; of what the device tells, only kind and mark reach the mbuf.
std::uint16_t rx_burst_plain(void* queue, rte_mbuf** mbufs, std::uint16_t most);
/// One buffer a frame, with checksum flags, hash and timestamp.
std::uint16_t rx_burst_offloads(void* queue, rte_mbuf** mbufs, std::uint16_t most);
/// The same with frames in several buffers: scatter and buffer split.
std::uint16_t rx_burst_chained(void* queue, rte_mbuf** mbufs, std::uint16_t most);

/// The same by drivers that touch what they receive with the CPU (RxQueue::touches).
std::uint16_t rx_burst_plain_touching(void* queue, rte_mbuf** mbufs, std::uint16_t most);
std::uint16_t rx_burst_offloads_touching(void* queue, rte_mbuf** mbufs, std::uint16_t most);
std::uint16_t rx_burst_chained_touching(void* queue, rte_mbuf** mbufs, std::uint16_t most);

/// One buffer a frame and no offload, until a chain comes.
std::uint16_t tx_burst_plain(void* queue, rte_mbuf** mbufs, std::uint16_t count);
/// Chains and checksums.
std::uint16_t tx_burst_full(void* queue, rte_mbuf** mbufs, std::uint16_t count);
/// The same by drivers that read payload with the CPU (TxQueue::reads), or take frames of so many pieces only.
std::uint16_t tx_burst_touching(void* queue, rte_mbuf** mbufs, std::uint16_t count);
/// Sums of the pseudo headers; refuses what the device has not with rte_errno.
std::uint16_t tx_prepare(void* queue, rte_mbuf** mbufs, std::uint16_t count);

}  // namespace warpline::vnic
