// SPDX-License-Identifier: Apache-2.0
#include "vnic/device/registry.h"

#include <algorithm>

namespace warpline::vnic {
namespace {

std::recursive_mutex registry_mutex;

std::vector<Device*>& devices() {
  static std::vector<Device*> all;
  return all;
}

/// Joins the port with the other end of its wire, as its devargs name it; a peer that is absent now may come later.
void connect(Device& device) {
  Ingress* other_end = nullptr;
  if (device.args.wire == WireKind::loopback) {
    other_end = &device.ingress;
  } else if (device.args.wire == WireKind::peer) {
    Device* const peer = find_device(device.args.peer);
    other_end = peer != nullptr ? &peer->ingress : nullptr;
  }
  device.egress.connect(other_end);
}

}  // namespace

std::unique_lock<std::recursive_mutex> lock_registry() { return std::unique_lock(registry_mutex); }

void register_device(Device& device) {
  const auto lock = lock_registry();
  devices().push_back(&device);
  connect(device);
  for (Device* other : find_senders_to(device.name)) connect(*other);
}

void unregister_device(Device& device) {
  const auto lock = lock_registry();
  std::erase(devices(), &device);
  for (Device* other : find_senders_to(device.name)) {
    other->egress.lock();
    other->egress.disconnect();
    other->egress.unlock();
  }
}

Device* find_device(std::string_view name) {
  const auto lock = lock_registry();
  const auto found = std::ranges::find_if(devices(), [&](const Device* device) { return device->name == name; });
  return found == devices().end() ? nullptr : *found;
}

Device* find_device(std::uint16_t port_id) {
  const auto lock = lock_registry();
  const auto found = std::ranges::find_if(devices(), [&](const Device* device) { return device->port_id == port_id; });
  return found == devices().end() ? nullptr : *found;
}

Device* find_moved_link() {
  const auto lock = lock_registry();
  const auto found = std::ranges::find_if(
      devices(), [](Device* device) { return device->link.moved.exchange(false, std::memory_order_acquire); });
  return found == devices().end() ? nullptr : *found;
}

std::vector<Device*> find_senders_to(std::string_view name) {
  const auto lock = lock_registry();
  std::vector<Device*> senders;
  for (Device* device : devices()) {
    if (device->args.wire == WireKind::peer && device->args.peer == name) senders.push_back(device);
  }
  return senders;
}

}  // namespace warpline::vnic
