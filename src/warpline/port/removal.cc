// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/removal.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <utility>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include "warpline/base/output.h"
#include "warpline/port/interface_watch.h"
#include "warpline/port/removal_watch.h"

namespace warpline::port {
namespace {

/// How a port has lost its device.
enum class Loss : std::uint8_t { removed, reset, broken };

/// Ports that have lost their devices, in the order in which they did.
struct Removed {
  struct Port {
    std::string name;
    Loss loss;
  };
  std::atomic<bool> any = false;
  std::mutex mutex;
  std::vector<Port> ports;
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

std::string note_of(const Removed::Port& port) {
  constexpr const char* kLosses[] = {"was removed, or asked back by the kernel",
                                     "was reset, or has to be: it has forgotten what it was set up for",
                                     "did not recover from an error, as its driver says"};
  return fmt::format("port {}: its device {}: the run ended", port.name, kLosses[static_cast<std::size_t>(port.loss)]);
}

/// What drivers tell by: a physical function that resets takes its virtual ones along, and some drivers want their
/// devices to be reset by the program.
constexpr std::pair<rte_eth_event_type, Loss> kEvents[] = {{RTE_ETH_EVENT_INTR_RMV, Loss::removed},
                                                           {RTE_ETH_EVENT_INTR_RESET, Loss::reset},
                                                           {RTE_ETH_EVENT_RECOVERY_FAILED, Loss::broken}};

/// On DPDK's interrupt thread.
void add(const Removed::Port& port) {
  Removed& all = removed();
  {
    const std::scoped_lock lock(all.mutex);
    if (std::ranges::find(all.ports, port.name, &Removed::Port::name) != all.ports.end()) return;
    all.ports.push_back(port);
    all.any.store(true, std::memory_order_relaxed);
  }
  put_line(stderr, "warpline: " + note_of(port));
}

void add_removed(const std::string& name) { add({name, Loss::removed}); }

void on_device_event(const char* device, rte_dev_event_type event, void*) {
  if (event == RTE_DEV_EVENT_REMOVE && device != nullptr) add_removed(device);
}

int on_port_event(std::uint16_t port, rte_eth_event_type event, void*, void*) {
  char name[RTE_ETH_NAME_MAX_LEN] = "";
  if (rte_eth_dev_get_name_by_port(port, name) != 0) return 0;
  for (const auto& [told, loss] : kEvents) {
    if (told == event) add({name, loss});
  }
  return 0;
}

}  // namespace

bool any_removed() { return removed().any.load(std::memory_order_relaxed); }

std::vector<std::string> removal_notes() {
  Removed& all = removed();
  const std::scoped_lock lock(all.mutex);
  std::vector<std::string> notes;
  for (const Removed::Port& port : all.ports) notes.push_back(note_of(port));
  return notes;
}

void watch_removal(std::uint16_t port, const std::string& device) {
  Removed& all = removed();
  {
    const std::scoped_lock lock(all.mutex);
    std::erase_if(all.ports, [&](const Removed::Port& lost) { return lost.name == device; });
    all.any.store(!all.ports.empty(), std::memory_order_relaxed);
  }
  // A driver that cannot tell has no such event, which is no error.
  for (const auto& [event, loss] : kEvents) (void)rte_eth_dev_callback_register(port, event, on_port_event, nullptr);
  (void)rte_dev_event_callback_register(device.c_str(), on_device_event, nullptr);
  if (const unsigned interface = interface_of(port, device); interface != 0)
    watch_interface(interface, device, add_removed);
}

void end_removal_watch(std::uint16_t port, const std::string& device) {
  if (const unsigned interface = interface_of(port, device); interface != 0) end_interface_watch(interface);
  for (const auto& [event, loss] : kEvents) (void)rte_eth_dev_callback_unregister(port, event, on_port_event, nullptr);
  (void)rte_dev_event_callback_unregister(device.c_str(), on_device_event, nullptr);
}

}  // namespace warpline::port
