// SPDX-License-Identifier: Apache-2.0
// The choice of how sent mbufs are freed; rte_net_vnic_recycle_mbufs, which needs no registry, is in bursts/recycle.cc.
#include "warpline/vnic/recycle_ops.h"

#include <cerrno>

#include "vnic/device/registry.h"

int rte_net_vnic_set_tx_free(std::uint16_t port_id, std::uint16_t queue, rte_net_vnic_tx_free way) {
  using namespace warpline::vnic;
  if (way != RTE_NET_VNIC_FREE_CHECKED && way != RTE_NET_VNIC_FREE_CACHE) return -EINVAL;
  const auto lock = lock_registry();
  Device* const device = find_device(port_id);
  if (device == nullptr || queue >= kMaxQueues || device->tx[queue] == nullptr) return -ENODEV;
  device->tx[queue]->frees_to_cache = way == RTE_NET_VNIC_FREE_CACHE;
  return 0;
}
