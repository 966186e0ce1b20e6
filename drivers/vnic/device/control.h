// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "vnic/device/device.h"

// Addresses, link, MTU and RSS of a port, as ethdev calls them. The control thread's; 0 or a negative errno.
namespace warpline::vnic {

inline constexpr std::uint32_t kMaxMacs = 64;

/// Raises or lowers the link and tells whoever asked for link interrupts. Not under the registry's lock: callbacks may
/// call anything.
void set_link(Device& device, bool up);
/// What ethdev shows as the link from now on; true when it changed. Any thread but those in burst calls.
bool publish_link(Device& device);
/// The same, and tells whoever asked for link interrupts when it changed.
void notify_link(Device& device);
/// After a fault that reset the device: nothing comes in any more, and whoever asked for resets is told. Any thread but
/// those in burst calls.
void notify_reset(Device& device);

/// The port of that name has come or gone: the links of those that it is the peer of.
void tell_peers(std::string_view name);

int link_up(rte_eth_dev* dev);
int link_down(rte_eth_dev* dev);
int link_update(rte_eth_dev* dev, int wait);

int promiscuous_enable(rte_eth_dev* dev);
int promiscuous_disable(rte_eth_dev* dev);
int allmulticast_enable(rte_eth_dev* dev);
int allmulticast_disable(rte_eth_dev* dev);
int mac_add(rte_eth_dev* dev, rte_ether_addr* mac, std::uint32_t index, std::uint32_t pool);
void mac_remove(rte_eth_dev* dev, std::uint32_t index);
int mac_set(rte_eth_dev* dev, rte_ether_addr* mac);
int multicast_list_set(rte_eth_dev* dev, rte_ether_addr* macs, std::uint32_t count);
int mtu_set(rte_eth_dev* dev, std::uint16_t mtu);

int reta_update(rte_eth_dev* dev, rte_eth_rss_reta_entry64* reta, std::uint16_t size);
int reta_query(rte_eth_dev* dev, rte_eth_rss_reta_entry64* reta, std::uint16_t size);
/// RTE_ETH_RSS_* that a port of that persona hashes.
[[nodiscard]] std::uint64_t rss_fields_of(const Persona& persona);
int rss_hash_update(rte_eth_dev* dev, rte_eth_rss_conf* conf);
int rss_hash_get(rte_eth_dev* dev, rte_eth_rss_conf* conf);

int flow_ops_get(rte_eth_dev* dev, const rte_flow_ops** ops);
int read_clock(rte_eth_dev* dev, std::uint64_t* clock);

}  // namespace warpline::vnic
