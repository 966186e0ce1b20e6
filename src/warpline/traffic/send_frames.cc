// SPDX-License-Identifier: Apache-2.0
#include "warpline/traffic/send_frames.h"

#include <algorithm>
#include <array>

#include <rte_ethdev.h>

#include "warpline/base/time/clock.h"

namespace warpline::traffic {

Tally send_frames(Generator& generator, port::PortQueue to, std::uint32_t packets) {
  constexpr std::uint16_t kBurst = 32;
  Tally sent;
  while (packets != 0) {
    std::array<rte_mbuf*, kBurst> mbufs;
    const auto wanted = static_cast<std::uint16_t>(std::min<std::uint32_t>(packets, kBurst));
    Generator::Filled filled = generator.fill(mbufs.data(), wanted, ticks_now());
    if (filled.packets == 0) break;
    const std::uint16_t taken = rte_eth_tx_burst(to.port, to.queue, mbufs.data(), filled.packets);
    for (std::uint16_t i = taken; i < filled.packets; ++i) filled.bytes -= rte_pktmbuf_pkt_len(mbufs[i]);
    rte_pktmbuf_free_bulk(&mbufs[taken], filled.packets - taken);
    sent += {taken, filled.bytes};
    packets -= taken;
    if (taken < wanted) break;
  }
  return sent;
}

}  // namespace warpline::traffic
