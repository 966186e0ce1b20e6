// SPDX-License-Identifier: Apache-2.0
#include "vnic/setup/configure.h"

#include <algorithm>
#include <bit>
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

constexpr std::uint16_t kPreferredBurst = 32;

/// The bits of RTE_ETH_MQ_RX_* other than RSS stand for what a virtual port has no use for.
bool knows_modes(const Device& device, const rte_eth_conf& conf) {
  if ((conf.rxmode.mq_mode & ~RTE_ETH_MQ_RX_RSS_FLAG) != 0 || conf.txmode.mq_mode != RTE_ETH_MQ_TX_NONE) {
    log_error("%s: of the multi-queue modes there are RSS and none", device.name.c_str());
    return false;
  }
  const rte_eth_rss_conf& rss = conf.rx_adv_conf.rss_conf;
  const unsigned key_bytes = device.args.persona->rss_key_bytes;
  if (rss.rss_key != nullptr && rss.rss_key_len != 0 && rss.rss_key_len != key_bytes) {
    log_error("%s: the RSS key has %u bytes, not %u", device.name.c_str(), rss.rss_key_len, key_bytes);
    return false;
  }
  return true;
}

bool takes_queues(const Device& device, std::uint16_t rx_queues) {
  if (!device.args.persona->power_of_two_queues || std::has_single_bit(rx_queues)) return true;
  log_error("%s: %u receive queues, of which %s takes powers of two only", device.name.c_str(), rx_queues,
            device.args.persona->name.data());
  return false;
}

std::uint16_t table_entries(const Device& device) {
  const Persona& persona = *device.args.persona;
  if (!persona.rss_entries_of_queues) return persona.rss_entries;
  return std::min<std::uint16_t>(persona.rss_entries, std::max<std::uint16_t>(device.rx_queues, 1) * 4);
}

/// Where the table is of the port's queues, there is none before RSS is configured.
std::uint16_t entries_told(const Device& device) {
  const bool unknown = device.args.persona->rss_entries_of_queues && device.ingress.rss.fields() == 0;
  return unknown ? std::uint16_t{0} : table_entries(device);
}

/// What drivers find wrong with a split only when the port starts.
bool splits_as_the_device_does(const Device& device) {
  if (device.args.persona->splits != Splits::behind_headers) return true;
  const auto cuts_by_length = [](const RxQueue* queue) { return queue->group > 1 && !queue->split_at_headers; };
  if (std::none_of(device.rx.begin(), device.rx.begin() + device.rx_queues, cuts_by_length)) return true;
  log_error("%s: %s splits frames behind their headers only", device.name.c_str(), device.args.persona->name.data());
  return false;
}

void configure_rss(Device& device, const rte_eth_conf& conf) {
  const Ingress::Change change(device.ingress);
  Rss& rss = device.ingress.rss;
  const rte_eth_rss_conf& wanted = conf.rx_adv_conf.rss_conf;
  const bool enabled = (conf.rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG) != 0;
  const Persona& persona = *device.args.persona;
  const bool by_itself = (persona.lacks & kLacksRssControl) != 0;
  rss.set_fields(by_itself ? Rss::supported_fields() : enabled ? wanted.rss_hf & rss_fields_of(persona) : 0);
  rss.set_key_bytes(persona.rss_key_bytes);
  if (enabled && wanted.rss_key != nullptr && wanted.rss_key_len == persona.rss_key_bytes) {
    rss.set_key({wanted.rss_key, wanted.rss_key_len});
  }
  if (!by_itself) rss.entries = table_entries(device);
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
  const Persona& persona = *device.args.persona;
  info->max_rx_queues = device.args.rx_queues;
  info->max_tx_queues = device.args.tx_queues;
  info->min_mtu = persona.least_mtu;
  info->max_mtu = persona.most_mtu;
  info->min_rx_bufsize = persona.rx_buffer_told;
  info->max_rx_pktlen = std::uint32_t{persona.most_mtu} + persona.frame_overhead;
  info->max_mac_addrs = (persona.lacks & kLacksAddresses) != 0 ? 1 : kMaxMacs;
  if (persona.splits != Splits::none) {
    info->rx_seg_capa.max_nseg = persona.split_segments;
    info->rx_seg_capa.multi_pools = 1;
    info->rx_seg_capa.offset_allowed = persona.split_offsets ? 1 : 0;
  }
  const auto granted = [&](std::uint64_t tx_offloads) {
    constexpr std::uint64_t kFastFree = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
    return device.args.fast_free ? tx_offloads : tx_offloads & ~kFastFree;
  };
  info->rx_offload_capa = persona.rx_offloads;
  info->rx_queue_offload_capa = persona.rx_queue_offloads;
  info->tx_offload_capa = granted(persona.tx_offloads | RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE);
  info->tx_queue_offload_capa = granted(persona.tx_queue_offloads);
  info->reta_size = entries_told(device);
  info->hash_key_size = static_cast<std::uint8_t>(persona.rss_key_told ? persona.rss_key_bytes : 0);
  info->flow_type_rss_offloads = rss_fields_of(persona);
  info->rx_desc_lim = {.nb_max = persona.rx_ring.most,
                       .nb_min = persona.rx_ring.least,
                       .nb_align = persona.rx_ring.multiple,
                       .nb_seg_max = 0,
                       .nb_mtu_seg_max = 0};
  info->tx_desc_lim = {.nb_max = persona.tx_ring.most,
                       .nb_min = persona.tx_ring.least,
                       .nb_align = persona.tx_ring.multiple,
                       .nb_seg_max = persona.pieces_told,
                       .nb_mtu_seg_max = persona.pieces_told};
  info->default_rxconf.rx_free_thresh = persona.rx_free_thresh;
  info->default_txconf.tx_free_thresh = persona.tx_free_thresh;
  info->default_txconf.tx_rs_thresh = persona.tx_rs_thresh;
  info->speed_capa = RTE_ETH_LINK_SPEED_100G;
  info->default_rxportconf = {.burst_size = kPreferredBurst, .ring_size = persona.rx_ring.preferred, .nb_queues = 1};
  info->default_txportconf = {.burst_size = kPreferredBurst, .ring_size = persona.tx_ring.preferred, .nb_queues = 1};
  info->dev_capa = persona.keeps_flow_rules ? RTE_ETH_DEV_CAPA_FLOW_RULE_KEEP : 0;
  if ((persona.lacks & kLacksQueueSetup) == 0) {
    info->dev_capa |= RTE_ETH_DEV_CAPA_RUNTIME_RX_QUEUE_SETUP | RTE_ETH_DEV_CAPA_RUNTIME_TX_QUEUE_SETUP;
  }
  return 0;
}

int configure(rte_eth_dev* dev) {
  Device& device = device_of(dev);
  const rte_eth_conf& conf = dev->data->dev_conf;
  if (!knows_modes(device, conf) || !takes_queues(device, dev->data->nb_rx_queues)) return -EINVAL;
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
  if (const int error = open_link_interrupt(); error != 0) {
    log_error("%s: no interrupt for its link: %s", device.name.c_str(), std::strerror(-error));
    return error;
  }
  if (!all_are_set_up(device) || !splits_as_the_device_does(device)) return -EINVAL;
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
  if (!device.args.persona->keeps_flow_rules) {
    const Ingress::Change change(device.ingress);
    device.ingress.flows.clear();
  }
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
