// SPDX-License-Identifier: Apache-2.0
#include "vnic/setup/queue_offloads.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>

#include "vnic/bursts/bursts.h"
#include "vnic/bursts/recycle.h"
#include "vnic/common/log.h"

namespace warpline::vnic {
namespace {

/// What a receive queue needs of its burst function; each does what those before it do.
enum class RxNeed : std::uint8_t { plain, offloads, chained };

RxNeed need_of(const RxQueue& queue) {
  if (queue.group > 1 || queue.scatter) return RxNeed::chained;
  constexpr std::uint64_t kReported = kRxChecksums | RTE_ETH_RX_OFFLOAD_RSS_HASH | RTE_ETH_RX_OFFLOAD_TIMESTAMP;
  return (queue.offloads & kReported) != 0 ? RxNeed::offloads : RxNeed::plain;
}

/// By what the queues need, of drivers that touch nothing and of those that do.
constexpr eth_rx_burst_t kRxBursts[2][3] = {
    {rx_burst_plain, rx_burst_offloads, rx_burst_chained},
    {rx_burst_plain_touching, rx_burst_offloads_touching, rx_burst_chained_touching}};

bool needs_full(const TxQueue& queue) { return (queue.offloads & kTxFullOffloads) != 0; }

int refuse_while_running(const Hardware& hardware, const char* direction, std::uint16_t queue) {
  log_error("%s: %s queue %u: the port was started without these offloads; stop it first", hardware.name.c_str(),
            direction, queue);
  return -ENOTSUP;
}

}  // namespace

void configure_ingress(rte_eth_dev* dev) {
  Device& device = device_of(dev);
  const Ingress::Change change(device.ingress);
  Ingress& ingress = device.ingress;
  ingress.max_frame = dev->data->mtu + kFrameOverhead;
  ingress.checksum_offloads = 0;
  ingress.needs_header_length = false;
  ingress.reports_hash = false;
  ingress.reports_time = false;
  for (std::uint16_t i = 0; i < device.rx_queues; ++i) {
    if (device.rx[i] == nullptr) continue;
    const RxQueue& queue = *device.rx[i];
    ingress.checksum_offloads |= queue.offloads & kRxChecksums;
    ingress.needs_header_length = ingress.needs_header_length || queue.split_at_headers;
    ingress.reports_hash = ingress.reports_hash || (queue.offloads & RTE_ETH_RX_OFFLOAD_RSS_HASH) != 0;
    ingress.reports_time = ingress.reports_time || (queue.offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0;
  }
}

void choose_bursts(rte_eth_dev* dev) {
  const Device& device = device_of(dev);
  const Persona& persona = *device.args.persona;
  RxNeed need = RxNeed::plain;
  for (std::uint16_t i = 0; i < device.rx_queues; ++i) need = std::max(need, need_of(*device.rx[i]));
  const bool full = std::any_of(device.tx.begin(), device.tx.begin() + device.tx_queues,
                                [](const TxQueue* queue) { return needs_full(*queue); });
  dev->rx_pkt_burst = kRxBursts[persona.touches_received != 0][static_cast<std::size_t>(need)];
  dev->tx_pkt_burst = full ? tx_burst_full : tx_burst_plain;
  if (device.args.reads_sent.bytes != 0 || persona.pieces_sent != 0) dev->tx_pkt_burst = tx_burst_touching;
  dev->tx_pkt_prepare = tx_prepare;
  dev->data->scattered_rx = need == RxNeed::chained;
  install_recycling(dev);
}

int adopt_while_running(rte_eth_dev* dev, const RxQueue& queue) {
  const std::span bursts(kRxBursts[queue.hardware->args.persona->touches_received != 0]);
  const auto has = std::find(bursts.begin(), bursts.end(), dev->rx_pkt_burst) - bursts.begin();
  if (static_cast<std::ptrdiff_t>(need_of(queue)) > has) {
    return refuse_while_running(*queue.hardware, "receive", queue.id);
  }
  configure_ingress(dev);
  return 0;
}

int adopt_while_running(rte_eth_dev* dev, const TxQueue& queue) {
  if (needs_full(queue) && dev->tx_pkt_burst == tx_burst_plain) {
    return refuse_while_running(*queue.hardware, "transmit", queue.id);
  }
  return 0;
}

}  // namespace warpline::vnic
