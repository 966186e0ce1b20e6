// SPDX-License-Identifier: Apache-2.0
#include "vnic/setup/configure.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "vnic/common/log.h"
#include "vnic/device/control.h"
#include "vnic/device/link_interrupt.h"
#include "vnic/device/registry.h"
#include "vnic/setup/queue_offloads.h"
#include "vnic/setup/queue_setup.h"

namespace warpline::vnic {
namespace {

constexpr std::uint16_t kPreferredRing = 512;
constexpr std::uint16_t kPreferredBurst = 32;

/// The bits of RTE_ETH_MQ_RX_* other than RSS stand for what a virtual port has no use for.
bool knows_modes(const Device& device, const rte_eth_conf& conf) {
  if ((conf.rxmode.mq_mode & ~RTE_ETH_MQ_RX_RSS_FLAG) != 0 || conf.txmode.mq_mode != RTE_ETH_MQ_TX_NONE) {
    log_error("%s: of the multi-queue modes there are RSS and none", device.name.c_str());
    return false;
  }
  const rte_eth_rss_conf& rss = conf.rx_adv_conf.rss_conf;
  if (rss.rss_key != nullptr && rss.rss_key_len != 0 && rss.rss_key_len != Rss::kKeyBytes) {
    log_error("%s: the RSS key has %u bytes, not %zu", device.name.c_str(), rss.rss_key_len, Rss::kKeyBytes);
    return false;
  }
  return true;
}

void configure_rss(Device& device, const rte_eth_conf& conf) {
  const Ingress::Change change(device.ingress);
  Rss& rss = device.ingress.rss;
  const rte_eth_rss_conf& wanted = conf.rx_adv_conf.rss_conf;
  const bool enabled = (conf.rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG) != 0;
  rss.set_fields(enabled ? wanted.rss_hf & Rss::supported_fields() : 0);
  if (enabled && wanted.rss_key != nullptr && wanted.rss_key_len == Rss::kKeyBytes) {
    std::uint8_t key[Rss::kKeyBytes];
    std::memcpy(key, wanted.rss_key, sizeof key);
    rss.set_key(key);
  }
  rss.reset_table(std::max<std::uint16_t>(device.rx_queues, 1));
}

bool all_are_set_up(const Device& device) {
  const auto there = [](const auto* queue) { return queue != nullptr; };
  if (std::all_of(device.rx.begin(), device.rx.begin() + device.rx_queues, there) &&
      std::all_of(device.tx.begin(), device.tx.begin() + device.tx_queues, there)) {
    return true;
  }
  log_error("%s: not all of its %u and %u queues were set up", device.name.c_str(), device.rx_queues, device.tx_queues);
  return false;
}

int start_queues(rte_eth_dev* dev) {
  Device& device = device_of(dev);
  for (std::uint16_t i = 0; i < device.rx_queues; ++i) {
    if (device.rx[i]->deferred) continue;
    if (const int error = start_queue(device, *device.rx[i]); error != 0) return error;
  }
  for (std::uint16_t i = 0; i < device.tx_queues; ++i) {
    if (device.tx[i]->deferred) continue;
    if (const int error = start_queue(device, *device.tx[i]); error != 0) return error;
  }
  return 0;
}

void stop_queues(Device& device) {
  for (std::uint16_t i = 0; i < device.tx_queues; ++i) {
    if (device.tx[i] != nullptr && device.tx[i]->started) stop_queue(device, *device.tx[i]);
  }
  for (std::uint16_t i = 0; i < device.rx_queues; ++i) {
    if (device.rx[i] != nullptr && device.rx[i]->started) stop_queue(device, *device.rx[i]);
  }
}

void accept_frames(Device& device, bool accept) {
  const Ingress::Change change(device.ingress);
  device.ingress.started.store(accept, std::memory_order_release);
}

}  // namespace

int infos_get(rte_eth_dev* dev, rte_eth_dev_info* info) {
  const Device& device = device_of(dev);
  info->max_rx_queues = device.args.queues;
  info->max_tx_queues = device.args.queues;
  info->min_mtu = RTE_ETHER_MIN_MTU;
  info->max_mtu = kMaxMtu;
  info->min_rx_bufsize = 64;
  info->max_rx_pktlen = kMaxFrame;
  info->max_mac_addrs = kMaxMacs;
  info->rx_seg_capa.max_nseg = kMaxSplit;
  info->rx_seg_capa.multi_pools = 1;
  info->rx_seg_capa.offset_allowed = 1;
  info->rx_offload_capa = info->rx_queue_offload_capa = kRxOffloads;
  info->tx_offload_capa = kTxFullOffloads | (device.args.fast_free ? RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE : 0);
  info->tx_queue_offload_capa = info->tx_offload_capa;
  info->reta_size = Rss::kTableSize;
  info->hash_key_size = Rss::kKeyBytes;
  info->flow_type_rss_offloads = Rss::supported_fields();
  info->rx_desc_lim = {.nb_max = kMaxRing, .nb_min = kMinRing, .nb_align = 1, .nb_seg_max = 0, .nb_mtu_seg_max = 0};
  info->tx_desc_lim = {
      .nb_max = kMaxRing, .nb_min = kMinRing, .nb_align = 1, .nb_seg_max = kMinRing, .nb_mtu_seg_max = kMinRing};
  info->speed_capa = RTE_ETH_LINK_SPEED_100G;
  info->default_rxportconf = {.burst_size = kPreferredBurst, .ring_size = kPreferredRing, .nb_queues = 1};
  info->default_txportconf = info->default_rxportconf;
  info->dev_capa = RTE_ETH_DEV_CAPA_RUNTIME_RX_QUEUE_SETUP | RTE_ETH_DEV_CAPA_RUNTIME_TX_QUEUE_SETUP |
                   RTE_ETH_DEV_CAPA_FLOW_RULE_KEEP;
  return 0;
}

int configure(rte_eth_dev* dev) {
  Device& device = device_of(dev);
  const rte_eth_conf& conf = dev->data->dev_conf;
  if (!knows_modes(device, conf)) return -EINVAL;
  device.rx_queues = device.tx_queues = 0;
  if (device.ingress.configure(dev->data->nb_rx_queues, device.args.buffer) != 0) {
    log_error("%s: no memory for %u packet buffers of %u bytes", device.name.c_str(), dev->data->nb_rx_queues,
              device.args.buffer);
    return -ENOMEM;
  }
  device.rx_queues = dev->data->nb_rx_queues;
  device.tx_queues = dev->data->nb_tx_queues;
  configure_rss(device, conf);
  return device.engine.prepare_copies();
}

int start(rte_eth_dev* dev) {
  Device& device = device_of(dev);
  device.link.interrupts.store(dev->data->dev_conf.intr_conf.lsc != 0, std::memory_order_relaxed);
  if (device.link.interrupts.load(std::memory_order_relaxed)) {
    if (const int error = open_link_interrupt(); error != 0) {
      log_error("%s: no interrupt for its link: %s", device.name.c_str(), std::strerror(-error));
      return error;
    }
  }
  if (!all_are_set_up(device)) return -EINVAL;
  choose_bursts(dev);
  device.iommu.take_eal_memory();
  configure_ingress(dev);
  int error = start_queues(dev);
  if (error == 0) error = device.engine.start(dev->data->mac_addrs);
  if (error != 0) {
    stop_queues(device);
    return error;
  }
  device.started.store(true, std::memory_order_release);
  accept_frames(device, true);
  device.link_looks = device.args.link_up_after;
  set_link(device, device.link_wanted && device.link_looks == 0);
  return 0;
}

int stop(rte_eth_dev* dev) {
  Device& device = device_of(dev);
  device.engine.stop();
  device.started.store(false, std::memory_order_release);
  stop_queues(device);
  accept_frames(device, false);
  set_link(device, false);
  return 0;
}

int close(rte_eth_dev* dev) {
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) return 0;
  auto* const holder = static_cast<Device**>(dev->data->dev_private);
  if (holder == nullptr || *holder == nullptr) return 0;
  Device* const device = *holder;
  unregister_device(*device);
  finish_link_interrupts();
  tell_peers(device->name);
  for (std::uint16_t i = 0; i < kMaxQueues; ++i) {
    if (device->rx[i] != nullptr) rx_queue_release(dev, i);
    if (device->tx[i] != nullptr) tx_queue_release(dev, i);
  }
  delete device;
  *holder = nullptr;
  return 0;
}

}  // namespace warpline::vnic
