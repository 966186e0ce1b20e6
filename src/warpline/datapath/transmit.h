// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "warpline/datapath/queue_path.h"
#include "warpline/port/announce/announce.h"

namespace warpline::datapath {

/// Sends mbufs[0 .. count), `bytes` in all (0: not counted), to `to`. What the queue does not take in path.tx_retries
/// further tries is freed and counted as tx_full. Owner: the path's transmitting lcore. Returns how many were sent.
std::uint16_t transmit_retrying(QueuePath& path, port::PortQueue to, rte_mbuf** mbufs, std::uint16_t count,
                                std::uint16_t sent, std::uint64_t bytes);

/// The same where path.tx_limits are to be kept: frames that the driver would cut, or lose, are dropped as giants.
std::uint16_t transmit_within_limits(QueuePath& path, port::PortQueue to, rte_mbuf** mbufs, std::uint16_t count,
                                     std::uint64_t bytes);

/// The mbufs, and their pointers, are the callee's.
inline std::uint16_t transmit(QueuePath& path, port::PortQueue to, rte_mbuf** mbufs, std::uint16_t count,
                              std::uint64_t bytes) {
  if (path.tx_limits.any()) [[unlikely]]
    return transmit_within_limits(path, to, mbufs, count, bytes);
  const std::uint16_t sent = rte_eth_tx_burst(to.port, to.queue, mbufs, count);
  if (sent != count) [[unlikely]]
    return transmit_retrying(path, to, mbufs, count, sent, bytes);
  path.sent.packets.add(count);
  if (bytes != 0) path.sent.bytes.add(bytes);
  return count;
}

/// Sends what the receiving port has to say of its addresses. Once per iteration of the lcore that transmits.
inline void send_announcements(QueuePath& path) {
  if (path.announcer != nullptr && path.announcer->due()) [[unlikely]]
    path.announcer->send(path.reply);
}

/// Drops one packet for `reason`, or sends the answer that it has become. Out of line: neither is the common way.
void set_aside(QueuePath& path, rte_mbuf* mbuf, Verdict verdict);

}  // namespace warpline::datapath
