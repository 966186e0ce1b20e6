// SPDX-License-Identifier: Apache-2.0
#include "vnic/setup/device_calls.h"

#include <array>
#include <cstddef>

#include "vnic/bursts/recycle.h"
#include "vnic/device/control.h"
#include "vnic/device/queue_status.h"
#include "vnic/device/stats.h"
#include "vnic/setup/configure.h"
#include "vnic/setup/queue_setup.h"

namespace warpline::vnic {
namespace {

eth_dev_ops all_calls() {
  eth_dev_ops table{};
  table.dev_infos_get = infos_get;
  table.dev_configure = configure;
  table.dev_start = start;
  table.dev_stop = stop;
  table.dev_close = close;
  table.dev_set_link_up = link_up;
  table.dev_set_link_down = link_down;
  table.link_update = link_update;
  table.promiscuous_enable = promiscuous_enable;
  table.promiscuous_disable = promiscuous_disable;
  table.allmulticast_enable = allmulticast_enable;
  table.allmulticast_disable = allmulticast_disable;
  table.mac_addr_add = mac_add;
  table.mac_addr_remove = mac_remove;
  table.mac_addr_set = mac_set;
  table.set_mc_addr_list = multicast_list_set;
  table.mtu_set = mtu_set;
  table.reta_update = reta_update;
  table.reta_query = reta_query;
  table.rss_hash_update = rss_hash_update;
  table.rss_hash_conf_get = rss_hash_get;
  table.flow_ops_get = flow_ops_get;
  table.read_clock = read_clock;
  table.rx_queue_setup = rx_queue_setup;
  table.tx_queue_setup = tx_queue_setup;
  table.rx_queue_release = rx_queue_release;
  table.tx_queue_release = tx_queue_release;
  table.rx_queue_start = rx_queue_start;
  table.rx_queue_stop = rx_queue_stop;
  table.tx_queue_start = tx_queue_start;
  table.tx_queue_stop = tx_queue_stop;
  table.tx_done_cleanup = tx_done_cleanup;
  table.rxq_info_get = rxq_info_get;
  table.txq_info_get = txq_info_get;
  table.rx_burst_mode_get = rx_burst_mode_get;
  table.tx_burst_mode_get = tx_burst_mode_get;
  table.dev_supported_ptypes_get = supported_packet_types;
  table.dev_ptypes_set = packet_types_set;
  table.buffer_split_supported_hdr_ptypes_get = splittable_headers;
  table.stats_get = stats_get;
  table.stats_reset = stats_reset;
  table.xstats_get = xstats_get;
  table.xstats_reset = stats_reset;
  table.xstats_get_names = xstats_get_names;
  offer_recycling(table);
  return table;
}

eth_dev_ops calls_of(const Persona& persona) {
  eth_dev_ops table = all_calls();
  const auto without = [&](Lack lack, auto&... calls) {
    if ((persona.lacks & lack) != 0) ((calls = nullptr), ...);
  };
  without(kLacksPromiscuous, table.promiscuous_enable, table.promiscuous_disable, table.allmulticast_enable,
          table.allmulticast_disable);
  without(kLacksAddresses, table.mac_addr_add, table.mac_addr_remove, table.mac_addr_set, table.set_mc_addr_list);
  without(kLacksLinkChange, table.dev_set_link_up, table.dev_set_link_down);
  without(kLacksQueueStop, table.rx_queue_start, table.rx_queue_stop, table.tx_queue_start, table.tx_queue_stop);
  without(kLacksQueueInfo, table.rxq_info_get, table.txq_info_get, table.rx_burst_mode_get, table.tx_burst_mode_get);
  without(kLacksCleanup, table.tx_done_cleanup);
  without(kLacksStats, table.stats_get, table.stats_reset, table.xstats_get, table.xstats_reset,
          table.xstats_get_names);
  without(kLacksStatsReset, table.stats_reset, table.xstats_reset);
  without(kLacksClock, table.read_clock);
  without(kLacksPacketTypes, table.dev_ptypes_set);
  without(kLacksRssControl, table.reta_update, table.reta_query, table.rss_hash_update, table.rss_hash_conf_get);
  without(kLacksFieldChange, table.rss_hash_update, table.rss_hash_conf_get);
  if (persona.splits == Splits::none || persona.splits == Splits::by_length) {
    table.buffer_split_supported_hdr_ptypes_get = nullptr;
  }
  return table;
}

/// Ports point to it, for as long as the process lives.
const eth_dev_ops& calls_for(const Persona& persona) {
  constexpr std::size_t kMostPersonas = 16;
  static const auto tables = [] {
    std::array<eth_dev_ops, kMostPersonas> all{};
    for (std::size_t i = 0; i < personas().size(); ++i) all[i] = calls_of(personas()[i]);
    return all;
  }();
  return tables[static_cast<std::size_t>(&persona - personas().data())];
}

}  // namespace

void set_calls(rte_eth_dev& dev, const Persona& persona) {
  dev.dev_ops = &calls_for(persona);
  if ((persona.lacks & kLacksRxStatus) == 0) {
    dev.rx_queue_count = rx_queue_count;
    dev.rx_descriptor_status = rx_descriptor_status;
  }
  if ((persona.lacks & kLacksTxStatus) == 0) dev.tx_descriptor_status = tx_descriptor_status;
}

}  // namespace warpline::vnic
