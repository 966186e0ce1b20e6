// SPDX-License-Identifier: Apache-2.0
// What libnccl-net-warpline-dpdk.so goes over.
#include "nccl/plugin.h"
#include "nccl_dpdk/port_nic.h"

namespace warpline::nccl {

Plugin& Plugin::instance() {
  static auto* const plugin = new Plugin(find_port_nics);  // its threads may run to the end of the process
  return *plugin;
}

}  // namespace warpline::nccl
