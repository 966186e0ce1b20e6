// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vnic/common/offloads.h"
#include "vnic/device/device.h"

// What the offloads of its queues ask of a port. The control thread's.
namespace warpline::vnic {

/// What all queues together ask of the receiving side.
void configure_ingress(rte_eth_dev* dev);
/// With engine=inline or thread; RX and TX burst functions that the queues' offloads ask for.
void choose_bursts(rte_eth_dev* dev);
/// For a queue that was set up while the port runs, whose burst functions stay: 0, or -ENOTSUP when they do less than
/// the queue's offloads ask for.
int adopt_while_running(rte_eth_dev* dev, const RxQueue& queue);
int adopt_while_running(rte_eth_dev* dev, const TxQueue& queue);

}  // namespace warpline::vnic
