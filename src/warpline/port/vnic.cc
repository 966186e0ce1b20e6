// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/vnic.h"

#include <dlfcn.h>
#include <link.h>

#include <string_view>
#include <utility>

// Null in a program without the driver.
extern "C" {
[[gnu::weak]] decltype(rte_net_vnic_recycle_mbufs) rte_net_vnic_recycle_mbufs;
[[gnu::weak]] decltype(rte_net_vnic_set_tx_free) rte_net_vnic_set_tx_free;
[[gnu::weak]] decltype(rte_net_vnic_set_copy_engine) rte_net_vnic_set_copy_engine;
[[gnu::weak]] decltype(rte_net_vnic_payload_regions) rte_net_vnic_payload_regions;
}

namespace warpline::port {
namespace {

template <typename Call>
bool look_up(void* plugin, const char* name, Call& call) {
  call = reinterpret_cast<Call>(dlsym(plugin, name));
  return call != nullptr;
}

/// Those of a plugin, which EAL has loaded for itself alone.
int find_plugin(dl_phdr_info* object, std::size_t /*size*/, void* found) {
  if (std::string_view(object->dlpi_name).find("librte_net_vnic.so") == std::string_view::npos) return 0;
  void* const plugin = dlopen(object->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
  if (plugin == nullptr) return 0;
  VnicCalls calls{};
  if (look_up(plugin, "rte_net_vnic_recycle_mbufs", calls.recycle_mbufs) &&
      look_up(plugin, "rte_net_vnic_set_tx_free", calls.set_tx_free) &&
      look_up(plugin, "rte_net_vnic_set_copy_engine", calls.set_copy_engine) &&
      look_up(plugin, "rte_net_vnic_payload_regions", calls.payload_regions)) {
    *static_cast<VnicCalls*>(found) = calls;
  }
  dlclose(plugin);  // EAL's own handle keeps it
  return 1;
}

}  // namespace

const VnicCalls* vnic_calls() {
  static VnicCalls found{rte_net_vnic_recycle_mbufs, rte_net_vnic_set_tx_free, rte_net_vnic_set_copy_engine,
                         rte_net_vnic_payload_regions};
  if (found.recycle_mbufs == nullptr) dl_iterate_phdr(find_plugin, &found);
  return found.recycle_mbufs == nullptr ? nullptr : &found;
}

Error built_without_vnic(std::string what) {
  return environment_error(std::move(what), "the program was built without net_vnic, for want of DPDK's driver headers",
                           "run setup/driver_headers, then make build");
}

}  // namespace warpline::port
