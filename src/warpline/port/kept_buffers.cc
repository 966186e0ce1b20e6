// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/kept_buffers.h"

#include <string>

namespace warpline::port {

// drivers/net of DPDK 22.11: af_xdp/rte_eth_af_xdp.c xdp_umem_destroy, memif/rte_eth_memif.c memif_dev_close.
bool keeps_buffers(const Port& port) {
  const bool lends = port.settings_in_force().spec.find("zero-copy=yes") != std::string::npos;
  return port.driver() == "net_af_xdp" || (port.driver() == "net_memif" && lends);
}

}  // namespace warpline::port
