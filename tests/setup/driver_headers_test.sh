#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What an out-of-tree driver of a virtual device includes compiles, against the headers that set-up put there. Exit 77:
# they are not there.
set -euo pipefail
headers=$("$(dirname "$0")/../../setup/driver_headers" --print)
if [ ! -d "$headers" ]; then
  echo "skipped: no $headers; setup/driver_headers fetches them, and could not, or was not run"
  exit 77
fi
read -ra flags < <(pkg-config --cflags libdpdk)
g++ -std=c++20 -Wno-volatile -fsyntax-only -DALLOW_INTERNAL_API "${flags[@]}" -I"$headers" -x c++ - <<'DRIVER'
#include <bus_vdev_driver.h>
#include <ethdev_driver.h>
#include <ethdev_vdev.h>
#include <rte_flow_driver.h>

static int probe(rte_vdev_device* device) {
  rte_eth_dev* port = rte_eth_vdev_allocate(device, 0);
  if (port == nullptr) return -1;
  port->rx_pkt_burst = nullptr;
  rte_eth_dev_probing_finish(port);
  return 0;
}
static int remove(rte_vdev_device*) { return 0; }
rte_vdev_driver driver = {.next = {}, .driver = {}, .probe = probe, .remove = remove, .dma_map = nullptr, .dma_unmap = nullptr, .drv_flags = 0};
DRIVER
