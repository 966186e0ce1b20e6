// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <link.h>

#include <string_view>

#include "memory/recycle_hook.h"
#include "vnic/recycle_ops.h"

// Null in a program without the driver.
extern "C" {
[[gnu::weak]] decltype(rte_net_vnic_recycle_mbufs) rte_net_vnic_recycle_mbufs;
[[gnu::weak]] decltype(rte_net_vnic_set_tx_free) rte_net_vnic_set_tx_free;
}

namespace warpline {
namespace {

struct Calls {
  decltype(&rte_net_vnic_recycle_mbufs) move;
  decltype(&rte_net_vnic_set_tx_free) set_tx_free;
};

/// Those of a plugin, which EAL has loaded for itself alone.
int find_plugin(dl_phdr_info* object, std::size_t /*size*/, void* found) {
  if (std::string_view(object->dlpi_name).find("librte_net_vnic.so") == std::string_view::npos) return 0;
  void* const plugin = dlopen(object->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
  if (plugin == nullptr) return 0;
  *static_cast<Calls*>(found) = {
      reinterpret_cast<decltype(Calls::move)>(dlsym(plugin, "rte_net_vnic_recycle_mbufs")),
      reinterpret_cast<decltype(Calls::set_tx_free)>(dlsym(plugin, "rte_net_vnic_set_tx_free"))};
  dlclose(plugin);  // EAL's own handle keeps it
  return 1;
}

Calls& calls() {
  static Calls found{rte_net_vnic_recycle_mbufs, rte_net_vnic_set_tx_free};
  if (found.move == nullptr) dl_iterate_phdr(find_plugin, &found);
  return found;
}

bool free_to_cache(PortQueue tx, bool on) {
  return calls().set_tx_free(tx.port, tx.queue, on ? RTE_NET_VNIC_FREE_CACHE : RTE_NET_VNIC_FREE_CHECKED) == 0;
}

}  // namespace

VnicRecycling vnic_recycling() {
  const Calls& found = calls();
  if (found.move == nullptr || found.set_tx_free == nullptr) return {};
  return {found.move, free_to_cache};
}

}  // namespace warpline
