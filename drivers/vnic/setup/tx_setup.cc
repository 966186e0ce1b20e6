// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <new>

#include <rte_malloc.h>
#include <rte_mbuf_dyn.h>

#include "vnic/common/log.h"
#include "vnic/rings/tx_ring.h"
#include "vnic/setup/queue_offloads.h"
#include "vnic/setup/queue_setup.h"

namespace warpline::vnic {
namespace {

constexpr std::uint16_t kDefaultThresh = 32;

void destroy(TxQueue* queue) {
  rte_memzone_free(queue->zone);
  rte_free(static_cast<void*>(queue->software_ring));
  rte_free(queue->buffers);
  queue->~TxQueue();
  rte_free(queue);
}

int setup_rings(TxQueue& queue, rte_eth_dev* dev, unsigned socket) {
  queue.zone = rte_eth_dma_zone_reserve(dev, "tx_ring", queue.id, sizeof(TxDescriptor) * kMaxRing, 4096,
                                        static_cast<int>(socket));
  queue.software_ring = static_cast<rte_mbuf**>(
      rte_zmalloc_socket("vnic_tx", sizeof(rte_mbuf*) * queue.size, 64, static_cast<int>(socket)));
  const bool keeps_addresses = queue.hardware->args.refill == Refill::ring;
  if (keeps_addresses) {
    queue.buffers = static_cast<std::uint64_t*>(
        rte_zmalloc_socket("vnic_tx", sizeof(std::uint64_t) * queue.size, 64, static_cast<int>(socket)));
  }
  if (queue.zone == nullptr || queue.software_ring == nullptr || (keeps_addresses && queue.buffers == nullptr)) {
    log_error("%s: no memory for a transmit ring of %u", queue.hardware->name.c_str(), queue.size);
    return -ENOMEM;
  }
  queue.ring = static_cast<TxDescriptor*>(queue.zone->addr);
  std::fill_n(queue.ring, queue.size, TxDescriptor{});
  return 0;
}

/// By the number of queues that the port is configured with.
PayloadRead payload_read(const Device& device) {
  const PayloadRead& reads = device.args.reads_sent;
  return device.tx_queues < reads.from_queues ? PayloadRead{} : reads;
}

/// As mlx5 looks it up.
std::uint64_t unread_flag(const PayloadRead& reads) {
  const int bit = reads.can_be_set ? rte_mbuf_dynflag_lookup("mlx5_fine_granularity_inline", nullptr) : -1;
  return bit < 0 ? 0 : std::uint64_t{1} << bit;
}

}  // namespace

bool tx_thresholds(std::uint16_t descriptors, std::uint16_t& rs_thresh, std::uint16_t& free_thresh) {
  if (free_thresh == 0) free_thresh = std::min<std::uint16_t>(kDefaultThresh, descriptors / 2);
  if (rs_thresh == 0) {
    rs_thresh = std::min<std::uint32_t>(kDefaultThresh, free_thresh);
    if (rs_thresh + free_thresh > descriptors) {
      rs_thresh = static_cast<std::uint16_t>(descriptors > free_thresh ? descriptors - free_thresh : 1);
    }
  }
  return rs_thresh < descriptors - 2 && free_thresh < descriptors - 3 && rs_thresh <= free_thresh &&
         rs_thresh + free_thresh <= descriptors;
}

int tx_queue_setup(rte_eth_dev* dev, std::uint16_t id, std::uint16_t descriptors, unsigned socket,
                   const rte_eth_txconf* conf) {
  Device& device = device_of(dev);
  tx_queue_release(dev, id);
  const Persona& persona = *device.args.persona;
  const std::uint16_t ring = ring_in_force(persona, descriptors);
  const bool reports_as_asked = persona.reports_every == 0;
  std::uint16_t rs_thresh = reports_as_asked ? conf->tx_rs_thresh : persona.reports_every;
  std::uint16_t free_thresh = conf->tx_free_thresh;
  if (free_thresh != 0 && !reports_as_asked) free_thresh = std::max(free_thresh, rs_thresh);
  if (ring == 0 || !tx_thresholds(ring, rs_thresh, free_thresh)) {
    log_error(
        "%s: transmit queue %u: tx_rs_thresh %u and tx_free_thresh %u do not suit a ring of %u: rs_thresh <= "
        "free_thresh < ring - 3 and rs_thresh + free_thresh <= ring",
        device.name.c_str(), id, rs_thresh, free_thresh, descriptors);
    return -EINVAL;
  }
  if (persona.rs_divides_ring && ring % rs_thresh != 0) {
    log_error("%s: transmit queue %u: tx_rs_thresh %u does not divide the ring of %u, as %s wants it",
              device.name.c_str(), id, rs_thresh, ring, persona.name.data());
    return -EINVAL;
  }
  void* const memory = rte_zmalloc_socket("vnic_tx_queue", sizeof(TxQueue), alignof(TxQueue), static_cast<int>(socket));
  if (memory == nullptr) {
    log_error("%s: no memory for transmit queue %u", device.name.c_str(), id);
    return -ENOMEM;
  }
  auto* const queue = new (memory) TxQueue{};
  queue->hardware = &device;
  queue->id = id;
  queue->deferred = conf->tx_deferred_start != 0;
  queue->size = ring;
  queue->rs_thresh = rs_thresh;
  queue->free_thresh = free_thresh;
  queue->offloads = conf->offloads | dev->data->dev_conf.txmode.offloads;
  queue->reads = payload_read(device);
  queue->unread_flag = unread_flag(queue->reads);
  queue->inline_engine = device.args.engine == EngineKind::inline_;
  queue->full_draw = Faults::PollDraw(mix64(device.args.seed) + id * std::uint64_t{4} + 2);
  if (const int error = setup_rings(*queue, dev, socket); error != 0) {
    destroy(queue);
    return error;
  }
  device.tx[id] = queue;
  dev->data->tx_queues[id] = queue;
  if (dev->data->dev_started == 0) return 0;
  const int error = adopt_while_running(dev, *queue);
  if (error != 0) tx_queue_release(dev, id);
  return error;
}

void tx_queue_release(rte_eth_dev* dev, std::uint16_t id) {
  Device& device = device_of(dev);
  TxQueue* const queue = id < kMaxQueues ? device.tx[id] : nullptr;
  if (queue == nullptr) return;
  if (queue->started.load(std::memory_order_relaxed)) tx_queue_stop(dev, id);
  device.retire(queue->driver_counts);
  device.retire(queue->device_counts);
  device.tx_reset_at[id] = {};
  device.tx[id] = nullptr;
  dev->data->tx_queues[id] = nullptr;
  destroy(queue);
}

}  // namespace warpline::vnic
