// SPDX-License-Identifier: Apache-2.0
#include "vnic/setup/probe.h"

#include <bus_vdev_driver.h>
#include <ethdev_vdev.h>

#include <cerrno>
#include <exception>
#include <memory>

#include <rte_errno.h>
#include <rte_malloc.h>

#include "vnic/common/device_clock.h"
#include "vnic/common/log.h"
#include "vnic/device/control.h"
#include "vnic/device/device.h"
#include "vnic/device/registry.h"
#include "vnic/setup/device_calls.h"
#include "vnic/setup/queue_offloads.h"
#include "warpline/base/random.h"

namespace warpline::vnic {
namespace {

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
  set_calls(*dev, *device.args.persona);
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

/// Its driver needs payload where the CPU reaches it, whatever it is told.
bool touches_payload(const Device& device) {
  const Persona& persona = *device.args.persona;
  return persona.touches_received != 0 || (persona.reads_sent.bytes != 0 && !persona.reads_sent.can_be_set);
}

int dma_map(rte_vdev_device* vdev, void* address, std::uint64_t /*iova*/, std::size_t length) {
  const auto lock = lock_registry();
  Device* const device = find_device(rte_vdev_device_name(vdev));
  if (device == nullptr) return answer(-ENODEV);
  if (touches_payload(*device)) return answer(-ENOTSUP);
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
    "persona=mlx5|ice|i40e|ixgbe|iavf|ena|bnxt|virtio|vmxnet3|gve wire=loopback|source|sink|static|net_vnicN "
    "engine=inline|thread cpu=<int> size=<bytes> "
    "flows=<int> rate=<rate> step=<int>@<time> pcap=<path> buffer=<bytes> queues=<int> fast_free=0|1 seed=<int> "
    "loss=<0..1> burst_loss_enter=<0..1> burst_loss_leave=<0..1> burst_loss=<0..1> "
    "duplicate=<0..1> reorder=<0..1> reorder_depth=<int> corrupt=<0..1> truncate=<0..1> "
    "delay=<time> jitter=<time> queue_bytes=<bytes> ecn_bytes=<bytes> stall=<0..1> "
    "rx_out=<0..1> tx_full=<0..1> flap_frames=<int> flap_lost=<int>");
