// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

namespace warpline::stream_port {

/// True if the checksum of the segment need not be looked at: the device found it right; or (`NONE`) a sender left it
/// to a device that does not exist, as between a virtual machine and its host: then what stands in the frame is wrong,
/// and nothing was on a wire.
[[nodiscard]] inline bool tcp_is_right(const rte_mbuf* mbuf) {
  const std::uint64_t l4 = mbuf->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
  return l4 == RTE_MBUF_F_RX_L4_CKSUM_GOOD || l4 == RTE_MBUF_F_RX_L4_CKSUM_NONE;
}

/// True if the device says that it found all checksums right, of whichever IP, without a look at the frame; or if they
/// need not be looked at.
[[nodiscard]] inline bool device_says_right(const rte_mbuf* mbuf) {
  const bool was_on_no_wire = (mbuf->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_NONE;
  const std::uint64_t ip = mbuf->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
  return tcp_is_right(mbuf) && (was_on_no_wire || ip == RTE_MBUF_F_RX_IP_CKSUM_GOOD);
}

/// True if the device found the checksums of a TCP segment right, or they need not be looked at. IPv6's header has
/// none, and no flag.
[[nodiscard]] inline bool device_found_right(const rte_mbuf* mbuf) {
  if (!tcp_is_right(mbuf)) return false;
  const auto* const ethernet = rte_pktmbuf_mtod(mbuf, const rte_ether_hdr*);
  const bool v6 = mbuf->data_len >= sizeof(rte_ether_hdr) && ethernet->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6);
  return v6 || device_says_right(mbuf);
}

/// Adds to `offloads` those by which the device checks what it can.
inline void ask_for_checksums(const rte_eth_dev_info& info, std::vector<std::string>& offloads) {
  const std::pair<std::uint64_t, const char*> wanted[] = {{RTE_ETH_RX_OFFLOAD_IPV4_CKSUM, "ipv4_cksum"},
                                                          {RTE_ETH_RX_OFFLOAD_TCP_CKSUM, "tcp_cksum"}};
  for (const auto& [bit, name] : wanted) {
    const bool there = std::ranges::find(offloads, name) != offloads.end();
    if ((info.rx_offload_capa & bit) != 0 && !there) offloads.emplace_back(name);
  }
}

}  // namespace warpline::stream_port
