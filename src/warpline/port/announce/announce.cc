// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/announce/announce.h"

#include <cstring>

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "warpline/packet/announcement.h"

namespace warpline::port {

std::uint32_t announce(const Port& port, std::span<const InterfaceAddress> addresses, rte_mempool& pool,
                       std::uint16_t vlan) {
  const MacAddress mac = port.mac();
  if (addresses.empty() || port.writes_files() || mac == MacAddress{}) return 0;
  std::uint32_t sent = 0;
  for (const auto& frame : packet::announcements(mac, addresses)) {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(&pool);
    if (mbuf == nullptr) break;
    char* const bytes = rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(frame.size()));
    if (bytes != nullptr) std::memcpy(bytes, frame.data(), frame.size());
    mbuf->vlan_tci = vlan;
    const bool ready = bytes != nullptr && (vlan == 0 || rte_vlan_insert(&mbuf) == 0);
    if (ready && rte_eth_tx_burst(port.id(), 0, &mbuf, 1) == 1) {
      ++sent;
    } else {
      rte_pktmbuf_free(mbuf);
    }
  }
  return sent;
}

}  // namespace warpline::port
