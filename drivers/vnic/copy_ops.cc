// SPDX-License-Identifier: Apache-2.0
#include "copy_ops.h"

#include <cerrno>

#include "registry.h"

using namespace warpline::vnic;

int rte_net_vnic_set_copy_ops(std::uint16_t port_id, const rte_net_vnic_copy_ops* ops) {
  const auto lock = lock_registry();
  Device* const device = find_device(port_id);
  if (device == nullptr) return -ENODEV;
  if (device->started.load(std::memory_order_acquire)) return -EBUSY;
  device->engine.set_copy_ops(ops != nullptr ? *ops : rte_net_vnic_copy_ops{});
  return 0;
}
