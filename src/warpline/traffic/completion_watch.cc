// SPDX-License-Identifier: Apache-2.0
#include "warpline/traffic/completion_watch.h"

#include <rte_ethdev.h>

namespace warpline::traffic {

std::uint32_t report_interval(port::PortQueue queue) {
  rte_eth_txq_info info{};
  const bool told = rte_eth_tx_queue_info_get(queue.port, queue.queue, &info) == 0;
  return told && info.conf.tx_rs_thresh != 0 ? info.conf.tx_rs_thresh : 1;
}

std::optional<std::uint32_t> descriptors_behind(port::PortQueue queue) {
  rte_eth_txq_info info{};
  if (rte_eth_tx_queue_info_get(queue.port, queue.queue, &info) != 0) return std::nullopt;
  // Drivers look for reports when they are made to, and a device of software works then.
  static_cast<void>(rte_eth_tx_done_cleanup(queue.port, queue.queue, 0));
  std::uint32_t behind = 0;
  // Which end of the ring is the newest, drivers see differently: so all of it is counted.
  for (std::uint16_t offset = 0; offset < info.nb_desc; ++offset) {
    const int status = rte_eth_tx_descriptor_status(queue.port, queue.queue, offset);
    if (status < 0) return std::nullopt;
    if (status == RTE_ETH_TX_DESC_FULL) ++behind;
  }
  return behind;
}

}  // namespace warpline::traffic
