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

/// With engine=inline or thread; RX and TX burst functions that the queues' offloads ask for.
void choose_bursts(rte_eth_dev* dev);
/// For a queue that was set up while the port runs, whose burst functions stay: 0, or -ENOTSUP when they do less than
/// the queue's offloads ask for.
int adopt_while_running(rte_eth_dev* dev, const RxQueue& queue);
int adopt_while_running(rte_eth_dev* dev, const TxQueue& queue);

}  // namespace warpline::vnic
