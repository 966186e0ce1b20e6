// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <rte_ethdev.h>

// What net_vnic does for frames at most.
namespace warpline::vnic {

inline constexpr std::uint64_t kRxChecksums =
    RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
inline constexpr std::uint64_t kRxOffloads = kRxChecksums | RTE_ETH_RX_OFFLOAD_SCATTER |
                                             RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_RSS_HASH |
                                             RTE_ETH_RX_OFFLOAD_TIMESTAMP;
inline constexpr std::uint64_t kTxChecksums =
    RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
/// Those for which a transmit queue needs more than the plain burst function.
inline constexpr std::uint64_t kTxFullOffloads = kTxChecksums | RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
inline constexpr std::uint64_t kTxOffloads = kTxFullOffloads | RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;

}  // namespace warpline::vnic
