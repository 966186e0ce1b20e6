// SPDX-License-Identifier: Apache-2.0
#include "warpline/vnic/copy_ops.h"

#include <cerrno>
#include <span>

#include "vnic/device/registry.h"

using namespace warpline::vnic;

int rte_net_vnic_set_copy_engine(std::uint16_t port_id, const rte_net_vnic_copy_engine* engine) {
  const auto lock = lock_registry();
  Device* const device = find_device(port_id);
  if (device == nullptr) return -ENODEV;
  if (device->started.load(std::memory_order_acquire)) return -EBUSY;
  if (engine != nullptr &&
      (engine->open == nullptr || engine->close == nullptr || engine->submit == nullptr || engine->landed == nullptr)) {
    return -EINVAL;
  }
  return device->engine.set_copy_engine(engine);
}

int rte_net_vnic_payload_regions(std::uint16_t port_id, void (*found)(void* context, void* begin, std::size_t length),
                                 void* context) {
  const auto lock = lock_registry();
  Device* const device = find_device(port_id);
  if (device == nullptr) return -ENODEV;
  int count = 0;
  device->engine.list_payload([&](std::span<std::uint8_t> region) {
    found(context, region.data(), region.size());
    ++count;
  });
  return count;
}
