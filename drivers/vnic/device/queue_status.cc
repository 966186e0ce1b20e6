// SPDX-License-Identifier: Apache-2.0
#include "vnic/device/queue_status.h"

#include <cerrno>
#include <cstdio>

#include "vnic/bursts/bursts.h"
#include "vnic/engine/hardware.h"
#include "vnic/rings/rx_ring.h"
#include "vnic/rings/tx_ring.h"

namespace warpline::vnic {
namespace {

constexpr std::uint32_t kPacketTypesKnown[] = {RTE_PTYPE_L2_ETHER,
                                               RTE_PTYPE_L2_ETHER_ARP,
                                               RTE_PTYPE_L2_ETHER_VLAN,
                                               RTE_PTYPE_L2_ETHER_QINQ,
                                               RTE_PTYPE_L3_IPV4_EXT_UNKNOWN,
                                               RTE_PTYPE_L3_IPV6_EXT_UNKNOWN,
                                               RTE_PTYPE_L4_ICMP,
                                               RTE_PTYPE_L4_UDP,
                                               RTE_PTYPE_L4_TCP,
                                               RTE_PTYPE_L4_FRAG,
                                               RTE_PTYPE_UNKNOWN};

/// The device cuts behind the innermost header that it knows, whichever of these is asked for.
constexpr std::uint32_t kHeaderEnds[] = {RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4_EXT_UNKNOWN | RTE_PTYPE_L4_UDP,
                                         RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4_EXT_UNKNOWN | RTE_PTYPE_L4_TCP,
                                         RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV6_EXT_UNKNOWN | RTE_PTYPE_L4_UDP,
                                         RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV6_EXT_UNKNOWN | RTE_PTYPE_L4_TCP,
                                         RTE_PTYPE_UNKNOWN};

/// So that something can be there: an inline engine works only when it is called.
void serve(RxQueue& queue, std::uint32_t frames) {
  if (queue.inline_engine && queue.started.load(std::memory_order_relaxed)) {
    queue.hardware->engine.serve_rx(queue, frames);
  }
}

std::uint32_t wrap(std::uint32_t index, std::uint32_t size) { return index >= size ? index - size : index; }

void set_mode(rte_eth_burst_mode& mode, const char* name) { std::snprintf(mode.info, sizeof mode.info, "%s", name); }

}  // namespace

std::invoke_result_t<eth_rx_queue_count_t, void*> rx_queue_count(void* opaque) {
  if (opaque == nullptr) return 0;
  RxQueue& queue = *static_cast<RxQueue*>(opaque);
  serve(queue, queue.size);
  const std::uint32_t posted = queue.refilled - queue.harvested;
  std::uint32_t done = 0;
  while (done < posted && (read_back(queue.ring[wrap(queue.next + done, queue.size)].word) & kRxDone) != 0) ++done;
  return static_cast<std::invoke_result_t<eth_rx_queue_count_t, void*>>(done);
}

int rx_descriptor_status(void* opaque, std::uint16_t offset) {
  if (opaque == nullptr) return -EINVAL;
  RxQueue& queue = *static_cast<RxQueue*>(opaque);
  if (offset >= queue.size) return -EINVAL;
  if (offset >= queue.refilled - queue.harvested) return RTE_ETH_RX_DESC_UNAVAIL;
  serve(queue, offset + 1U);
  const std::uint64_t word = read_back(queue.ring[wrap(std::uint32_t{queue.next} + offset, queue.size)].word);
  return (word & kRxDone) != 0 ? RTE_ETH_RX_DESC_DONE : RTE_ETH_RX_DESC_AVAIL;
}

int tx_descriptor_status(void* opaque, std::uint16_t offset) {
  if (opaque == nullptr) return -EINVAL;
  const TxQueue& queue = *static_cast<TxQueue*>(opaque);
  if (offset >= queue.size) return -EINVAL;
  const std::uint32_t vacant = tx_vacant(queue);
  if (offset < vacant) return RTE_ETH_TX_DESC_DONE;
  // A descriptor in use is done when its batch, up to the last descriptor, is reported done.
  const std::uint32_t place = offset - vacant;
  const std::uint32_t last = place - place % queue.rs_thresh + queue.rs_thresh - 1;
  if (last >= queue.sent - queue.reclaimed) return RTE_ETH_TX_DESC_FULL;
  const std::uint64_t word = read_back(queue.ring[(std::uint32_t{queue.reclaim_at} + last) % queue.size].word);
  return (word & kTxDone) != 0 ? RTE_ETH_TX_DESC_DONE : RTE_ETH_TX_DESC_FULL;
}

int tx_done_cleanup(void* opaque, std::uint32_t most) {
  if (!is_started(static_cast<TxQueue*>(opaque))) return 0;
  TxQueue& queue = *static_cast<TxQueue*>(opaque);
  if (queue.inline_engine) queue.hardware->engine.serve_tx(queue);
  int freed = 0;
  while ((most == 0 || static_cast<std::uint32_t>(freed) < most) && tx_batch_done(queue)) {
    tx_free_batch(queue);
    freed += queue.rs_thresh;
  }
  return freed;
}

void rxq_info_get(rte_eth_dev* dev, std::uint16_t id, rte_eth_rxq_info* info) {
  const RxQueue& queue = *device_of(dev).rx[id];
  info->mp = queue.pools[0];
  info->conf.rx_free_thresh = queue.free_thresh;
  info->conf.rx_deferred_start = queue.deferred ? 1 : 0;
  info->conf.rx_drop_en = 1;
  info->conf.offloads = queue.offloads;
  info->scattered_rx = queue.scatter ? 1 : 0;
  info->nb_desc = queue.size;
  info->rx_buf_size = queue.room[0];
}

void txq_info_get(rte_eth_dev* dev, std::uint16_t id, rte_eth_txq_info* info) {
  const TxQueue& queue = *device_of(dev).tx[id];
  // Drivers whose reports do not go by it say nothing of it.
  info->conf.tx_rs_thresh = queue.hardware->args.persona->reports_every == 0 ? queue.rs_thresh : 0;
  info->conf.tx_free_thresh = queue.free_thresh;
  info->conf.tx_deferred_start = queue.deferred ? 1 : 0;
  info->conf.offloads = queue.offloads;
  info->nb_desc = queue.size;
}

int rx_burst_mode_get(rte_eth_dev* dev, std::uint16_t /*id*/, rte_eth_burst_mode* mode) {
  set_mode(*mode, dev->rx_pkt_burst == rx_burst_plain      ? "plain"
                  : dev->rx_pkt_burst == rx_burst_offloads ? "offloads"
                  : dev->rx_pkt_burst == rx_burst_chained  ? "chained"
                                                           : "touching");
  return 0;
}

int tx_burst_mode_get(rte_eth_dev* dev, std::uint16_t /*id*/, rte_eth_burst_mode* mode) {
  set_mode(*mode, dev->tx_pkt_burst == tx_burst_plain  ? "plain"
                  : dev->tx_pkt_burst == tx_burst_full ? "full"
                                                       : "touching");
  return 0;
}

int packet_types_set(rte_eth_dev* dev, std::uint32_t mask) {
  Ingress& ingress = device_of(dev).ingress;
  const Ingress::Change change(ingress);
  ingress.reports_kind = mask != 0;
  return 0;
}

#if RTE_VERSION >= RTE_VERSION_NUM(24, 3, 0, 0)
const std::uint32_t* supported_packet_types(rte_eth_dev* /*dev*/, std::size_t* count) {
  *count = std::size(kPacketTypesKnown) - 1;
  return kPacketTypesKnown;
}

const std::uint32_t* splittable_headers(rte_eth_dev* /*dev*/, std::size_t* count) {
  *count = std::size(kHeaderEnds) - 1;
  return kHeaderEnds;
}
#else
const std::uint32_t* supported_packet_types(rte_eth_dev* /*dev*/) { return kPacketTypesKnown; }

const std::uint32_t* splittable_headers(rte_eth_dev* /*dev*/) { return kHeaderEnds; }
#endif

}  // namespace warpline::vnic
