// SPDX-License-Identifier: Apache-2.0
#include "registry.h"

#include <algorithm>
#include <vector>

namespace warpline::vnic {
namespace {

std::recursive_mutex registry_mutex;

std::vector<Device*>& devices() {
  static std::vector<Device*> all;
  return all;
}

bool sends_to(const Device& sender, const Device& receiver) {
  return sender.args.wire == WireKind::peer && sender.args.peer == receiver.name;
}

}  // namespace

std::unique_lock<std::recursive_mutex> lock_registry() { return std::unique_lock(registry_mutex); }

void register_device(Device& device) {
  const auto lock = lock_registry();
  devices().push_back(&device);
  device.egress.connect();
  for (Device* other : devices()) {
    if (other != &device && sends_to(*other, device)) other->egress.connect();
  }
}

void unregister_device(Device& device) {
  const auto lock = lock_registry();
  std::erase(devices(), &device);
  for (Device* other : devices()) {
    if (!sends_to(*other, device)) continue;
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

}  // namespace warpline::vnic
