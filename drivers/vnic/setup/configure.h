// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vnic/device/device.h"

// The life of a port, as ethdev calls it. The control thread's; 0 or a negative errno.
namespace warpline::vnic {

int infos_get(rte_eth_dev* dev, rte_eth_dev_info* info);
int configure(rte_eth_dev* dev);
int start(rte_eth_dev* dev);
int stop(rte_eth_dev* dev);
int close(rte_eth_dev* dev);

}  // namespace warpline::vnic
