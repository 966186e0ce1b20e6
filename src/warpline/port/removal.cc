// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/removal.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include "warpline/base/output.h"
#include "warpline/port/interface_watch.h"
#include "warpline/port/removal_watch.h"

namespace warpline::port {
namespace {

/// Ports that have lost their devices, in the order in which they did.
struct Removed {
  std::atomic<bool> any = false;
  std::mutex mutex;
  std::vector<std::string> names;
};

Removed& removed() {
  static Removed removed;
  return removed;
}

/// The interface of the kernel's that a port is on; 0: none, or one that is there beside the device. Those with a PCI
/// address have their device, whatever becomes of the interface.
unsigned interface_of(std::uint16_t port, const std::string& device) {
  rte_eth_dev_info info;
  const bool is_pci = device.find(':') != std::string::npos;
  return is_pci || rte_eth_dev_info_get(port, &info) != 0 ? 0 : info.if_index;
}

std::string note_of(const std::string& name) {
  return fmt::format("port {}: its device was removed, or asked back by the kernel: the run ended", name);
}

/// On DPDK's interrupt thread.
void add(const std::string& name) {
  Removed& all = removed();
  {
    const std::scoped_lock lock(all.mutex);
    if (std::ranges::find(all.names, name) != all.names.end()) return;
    all.names.push_back(name);
    all.any.store(true, std::memory_order_relaxed);
  }
  put_line(stderr, "warpline: " + note_of(name));
}

void on_device_event(const char* device, rte_dev_event_type event, void*) {
  if (event == RTE_DEV_EVENT_REMOVE && device != nullptr) add(device);
}

int on_port_event(std::uint16_t port, rte_eth_event_type, void*, void*) {
  char name[RTE_ETH_NAME_MAX_LEN] = "";
  if (rte_eth_dev_get_name_by_port(port, name) == 0) add(name);
  return 0;
}

}  // namespace

bool any_removed() { return removed().any.load(std::memory_order_relaxed); }

std::vector<std::string> removal_notes() {
  Removed& all = removed();
  const std::scoped_lock lock(all.mutex);
  std::vector<std::string> notes;
  for (const std::string& name : all.names) notes.push_back(note_of(name));
  return notes;
}

void watch_removal(std::uint16_t port, const std::string& device) {
  Removed& all = removed();
  {
    const std::scoped_lock lock(all.mutex);
    std::erase(all.names, device);
    all.any.store(!all.names.empty(), std::memory_order_relaxed);
  }
  // A driver that cannot tell has no such event, which is no error.
  (void)rte_eth_dev_callback_register(port, RTE_ETH_EVENT_INTR_RMV, on_port_event, nullptr);
  (void)rte_dev_event_callback_register(device.c_str(), on_device_event, nullptr);
  if (const unsigned interface = interface_of(port, device); interface != 0) watch_interface(interface, device, add);
}

void end_removal_watch(std::uint16_t port, const std::string& device) {
  if (const unsigned interface = interface_of(port, device); interface != 0) end_interface_watch(interface);
  (void)rte_eth_dev_callback_unregister(port, RTE_ETH_EVENT_INTR_RMV, on_port_event, nullptr);
  (void)rte_dev_event_callback_unregister(device.c_str(), on_device_event, nullptr);
}

}  // namespace warpline::port
