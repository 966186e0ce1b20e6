// SPDX-License-Identifier: Apache-2.0
// What libnccl-net-warpline.so goes over.
#include "nccl/plugin.h"
#include "nccl/socket_nic.h"

namespace warpline::nccl {

Plugin& Plugin::instance() {
  static auto* const plugin = new Plugin(find_socket_nics);  // its threads may run to the end of the process
  return *plugin;
}

}  // namespace warpline::nccl
