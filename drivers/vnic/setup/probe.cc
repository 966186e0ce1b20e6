// SPDX-License-Identifier: Apache-2.0
#include "vnic/setup/probe.h"

#include <bus_vdev_driver.h>
#include <ethdev_vdev.h>

#include <cerrno>
#include <exception>
#include <memory>

#include <rte_errno.h>
#include <rte_malloc.h>

#include "vnic/bursts/recycle.h"
#include "vnic/common/device_clock.h"
#include "vnic/common/log.h"
#include "vnic/device/control.h"
#include "vnic/device/device.h"
#include "vnic/device/queue_status.h"
#include "vnic/device/registry.h"
#include "vnic/device/stats.h"
#include "vnic/setup/configure.h"
#include "vnic/setup/queue_offloads.h"
#include "vnic/setup/queue_setup.h"
#include "warpline/base/random.h"

namespace warpline::vnic {
namespace {

const eth_dev_ops& device_ops() {
  static const eth_dev_ops ops = [] {
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
  }();
  return ops;
}

/// Hands the port to ethdev. `device` stays the caller's when it fails.
int attach(rte_vdev_device* vdev, Device& device) {
  rte_eth_dev* const dev = rte_eth_vdev_allocate(vdev, sizeof(Device*));
  if (dev == nullptr) return -ENOMEM;
  *static_cast<Device**>(dev->data->dev_private) = &device;
  dev->data->mac_addrs = static_cast<rte_ether_addr*>(rte_zmalloc("vnic_mac", sizeof(rte_ether_addr) * kMaxMacs, 0));
  if (dev->data->mac_addrs == nullptr) {
    rte_eth_dev_release_port(dev);
    return -ENOMEM;
  }
  device.ethdev = dev;
  device.port_id = dev->data->port_id;
  dev->data->mac_addrs[0] = address_of_name(device.name);
  device.ingress.macs.unicast.push_back(dev->data->mac_addrs[0]);
  device.ingress.reports_kind = true;
  dev->data->dev_flags |= RTE_ETH_DEV_INTR_LSC;
#ifdef RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS
  dev->data->dev_flags |= RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS;
#endif
  dev->dev_ops = &device_ops();
  dev->rx_queue_count = rx_queue_count;
  dev->rx_descriptor_status = rx_descriptor_status;
  dev->tx_descriptor_status = tx_descriptor_status;
  choose_bursts(dev);
  register_device(device);
  publish_link(device);
  rte_eth_dev_probing_finish(dev);
  tell_peers(device.name);
  return 0;
}

int probe_port(rte_vdev_device* vdev) {
  const char* const name = rte_vdev_device_name(vdev);
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
    log_error("%s: ports are for the primary process only", name);
    return -ENOTSUP;
  }
  Devargs args;
  if (const int error = parse_devargs(rte_vdev_device_args(vdev), args); error != 0) return error;
  if (args.wire == WireKind::peer && args.peer == name) {
    log_error("%s: a port is not its own peer; wire=loopback brings back what it sends", name);
    return -EINVAL;
  }
  static_cast<void>(device_nanos());
  auto device = std::make_unique<Device>(name, args);
  if (const int error = device->engine.open(); error != 0) return error;
  if (const int error = attach(vdev, *device); error != 0) {
    log_error("%s: ethdev has no place for the port", name);
    return error;
  }
  // Its owner is ethdev now, see close().
  [[maybe_unused]] Device* const given = device.release();
  return 0;
}

int probe(rte_vdev_device* vdev) {
  try {
    return probe_port(vdev);
  } catch (const std::exception& error) {
    log_error("%s: %s", rte_vdev_device_name(vdev), error.what());
    return -ENOMEM;
  }
}

int remove(rte_vdev_device* vdev) {
  rte_eth_dev* const dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));
  if (dev == nullptr) return 0;
  if (dev->data->dev_started != 0) {
    if (const int error = rte_eth_dev_stop(dev->data->port_id); error != 0) return error;
  }
  return rte_eth_dev_close(dev->data->port_id);
}

/// As the bus wants it: -1, and rte_errno says why.
int answer(int status) {
  if (status == 0) return 0;
  rte_errno = -status;
  return -1;
}

int dma_map(rte_vdev_device* vdev, void* address, std::uint64_t /*iova*/, std::size_t length) {
  const auto lock = lock_registry();
  Device* const device = find_device(rte_vdev_device_name(vdev));
  if (device == nullptr) return answer(-ENODEV);
  return answer(device->iommu.map(reinterpret_cast<std::uintptr_t>(address), length));
}

int dma_unmap(rte_vdev_device* vdev, void* address, std::uint64_t /*iova*/, std::size_t length) {
  const auto lock = lock_registry();
  Device* const device = find_device(rte_vdev_device_name(vdev));
  if (device == nullptr) return answer(-ENODEV);
  return answer(device->iommu.unmap(reinterpret_cast<std::uintptr_t>(address), length));
}

// Constant: the bus hears of it before anything is initialised at run time.
constinit rte_vdev_driver driver = {.next = {},
                                    .driver = {},
                                    .probe = probe,
                                    .remove = remove,
                                    .dma_map = dma_map,
                                    .dma_unmap = dma_unmap,
                                    .drv_flags = 0};

}  // namespace

rte_ether_addr address_of_name(std::string_view name) {
  std::uint64_t hash = 0;
  for (const char letter : name) hash = mix64(hash ^ static_cast<std::uint8_t>(letter));
  rte_ether_addr mac{};
  for (std::uint8_t& byte : mac.addr_bytes) {
    byte = static_cast<std::uint8_t>(hash);
    hash >>= 8;
  }
  mac.addr_bytes[0] = 0x02;
  return mac;
}

}  // namespace warpline::vnic

using warpline::vnic::driver;
RTE_PMD_REGISTER_VDEV(net_vnic, driver);
RTE_PMD_REGISTER_PARAM_STRING(
    net_vnic,
    "wire=loopback|source|sink|static|net_vnicN engine=inline|thread cpu=<int> size=<bytes> "
    "flows=<int> rate=<rate> step=<int>@<time> pcap=<path> buffer=<bytes> queues=<int> fast_free=0|1 seed=<int> "
    "loss=<0..1> burst_loss_enter=<0..1> burst_loss_leave=<0..1> burst_loss=<0..1> "
    "duplicate=<0..1> reorder=<0..1> reorder_depth=<int> corrupt=<0..1> truncate=<0..1> "
    "delay=<time> jitter=<time> queue_bytes=<bytes> ecn_bytes=<bytes> stall=<0..1> "
    "rx_out=<0..1> tx_full=<0..1> flap_frames=<int> flap_lost=<int>");
