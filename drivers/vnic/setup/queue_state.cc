// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "vnic/common/log.h"
#include "vnic/rings/rx_ring.h"
#include "vnic/rings/tx_ring.h"
#include "vnic/setup/queue_setup.h"

namespace warpline::vnic {
int start_queue(Device& device, RxQueue& queue) {
  if (const int error = device.engine.reset(queue); error != 0) {
    log_error("%s: receive queue %u: the copy engine has no lane for it", device.name.c_str(), queue.id);
    return error;
  }
  if (!rx_refill(queue, queue.size)) {
    log_error("%s: receive queue %u: the pool has no %u mbufs to fill the ring with", device.name.c_str(), queue.id,
              queue.size);
    device.engine.finish(queue);
    rx_empty(queue);
    return -ENOMEM;
  }
  queue.started.store(true, std::memory_order_release);
  const Ingress::Change change(device.ingress);
  device.ingress.queue_started[queue.id].store(true, std::memory_order_release);
  device.ethdev->data->rx_queue_state[queue.id] = RTE_ETH_QUEUE_STATE_STARTED;
  return 0;
}

void stop_queue(Device& device, RxQueue& queue) {
  {
    const Ingress::Change change(device.ingress);
    device.ingress.queue_started[queue.id].store(false, std::memory_order_release);
  }
  queue.started.store(false, std::memory_order_release);
  device.ethdev->data->rx_queue_state[queue.id] = RTE_ETH_QUEUE_STATE_STOPPED;
  device.engine.finish(queue);
  std::uint32_t lost = rx_empty(queue);
  PacketBuffer& buffer = device.ingress.buffer(queue.id);
  while (buffer.front().frame != nullptr) {
    buffer.pop();
    ++lost;
  }
  if (lost > 0) queue.driver_counts.add(Count::rx_stopped, lost);
}

int start_queue(Device& device, TxQueue& queue) {
  if (const int error = device.engine.reset(queue); error != 0) {
    log_error("%s: transmit queue %u: the copy engine has no lane for it", device.name.c_str(), queue.id);
    return error;
  }
  queue.started.store(true, std::memory_order_release);
  device.ethdev->data->tx_queue_state[queue.id] = RTE_ETH_QUEUE_STATE_STARTED;
  return 0;
}

void stop_queue(Device& device, TxQueue& queue) {
  queue.started.store(false, std::memory_order_release);
  device.ethdev->data->tx_queue_state[queue.id] = RTE_ETH_QUEUE_STATE_STOPPED;
  device.engine.finish(queue);
  tx_empty(queue);
}

int rx_queue_start(rte_eth_dev* dev, std::uint16_t id) {
  Device& device = device_of(dev);
  return start_queue(device, *device.rx[id]);
}

int rx_queue_stop(rte_eth_dev* dev, std::uint16_t id) {
  Device& device = device_of(dev);
  stop_queue(device, *device.rx[id]);
  return 0;
}

int tx_queue_start(rte_eth_dev* dev, std::uint16_t id) {
  Device& device = device_of(dev);
  return start_queue(device, *device.tx[id]);
}

int tx_queue_stop(rte_eth_dev* dev, std::uint16_t id) {
  Device& device = device_of(dev);
  stop_queue(device, *device.tx[id]);
  return 0;
}

}  // namespace warpline::vnic
