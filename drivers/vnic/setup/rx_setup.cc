// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>

#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include "vnic/common/log.h"
#include "vnic/rings/posted_set.h"
#include "vnic/rings/rx_ring.h"
#include "vnic/setup/queue_offloads.h"
#include "vnic/setup/queue_setup.h"

namespace warpline::vnic {
namespace {

constexpr std::uint16_t kDefaultFreeThresh = 32;

/// What a walk over all mbufs of a pool finds out.
struct PoolSurvey {
  const Hardware* hardware;
  Iommu::Cache cache;
  bool mapped = true;
  bool uniform = true;  ///< all buffers lie equally far from their mbufs
  std::ptrdiff_t buffer_at = 0;
};

void survey_mbuf(rte_mempool* /*pool*/, void* opaque, void* object, unsigned index) {
  PoolSurvey& survey = *static_cast<PoolSurvey*>(opaque);
  const rte_mbuf* const mbuf = static_cast<rte_mbuf*>(object);
  const auto address = reinterpret_cast<std::uintptr_t>(mbuf->buf_addr);
  survey.mapped = survey.mapped && survey.hardware->iommu.allows(address, mbuf->buf_len, survey.cache);
  const auto buffer_at = static_cast<std::ptrdiff_t>(address - reinterpret_cast<std::uintptr_t>(mbuf));
  if (index == 0) survey.buffer_at = buffer_at;
  survey.uniform = survey.uniform && survey.buffer_at == buffer_at;
  posted_set.admit(mbuf);
}

std::uint64_t rearm_data(std::uint16_t data_off, std::uint16_t port) {
  rte_mbuf mbuf{};
  mbuf.data_off = data_off;
  rte_mbuf_refcnt_set(&mbuf, 1);
  mbuf.nb_segs = 1;
  mbuf.port = port;
  std::uint64_t rearm;
  std::memcpy(&rearm, reinterpret_cast<const std::uint8_t*>(&mbuf) + offsetof(rte_mbuf, data_off), sizeof rearm);
  return rearm;
}

/// Segment `segment` of the queue's frames: `length` bytes, 0 for all there is, `offset` into a buffer of `pool`.
int setup_segment(RxQueue& queue, std::uint16_t segment, rte_mempool* pool, std::uint32_t length,
                  std::uint32_t offset) {
  const Hardware& hardware = *queue.hardware;
  const char* const port = hardware.name.c_str();
  if (pool == nullptr || pool->elt_size < sizeof(rte_mbuf) ||
      pool->private_data_size < sizeof(rte_pktmbuf_pool_private)) {
    log_error("%s: receive queue %u, segment %u: this is no pool of mbufs", port, queue.id, segment);
    return -EINVAL;
  }
  const std::uint32_t data_off = offset + (segment == 0 ? RTE_PKTMBUF_HEADROOM : 0);
  const std::uint32_t data_room = rte_pktmbuf_data_room_size(pool);
  if (data_room <= data_off || data_room - data_off < length) {
    log_error("%s: receive queue %u, segment %u: %u bytes at %u do not fit into the %u of pool %s", port, queue.id,
              segment, length, data_off, data_room, pool->name);
    return -EINVAL;
  }
  PoolSurvey survey{};
  survey.hardware = &hardware;
  rte_mempool_obj_iter(pool, survey_mbuf, &survey);
  if (!survey.mapped) {
    log_error(
        "%s: receive queue %u: buffers of pool %s are in memory that is not EAL's and was not mapped for the port; "
        "rte_extmem_register and rte_dev_dma_map do that",
        port, queue.id, pool->name);
    return -EFAULT;
  }
  const bool pinned = (rte_pktmbuf_priv_flags(pool) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) != 0;
  const bool near = survey.uniform && survey.buffer_at > 0 && survey.buffer_at < UINT16_MAX;
  const Persona& persona = *hardware.args.persona;
  queue.pools[segment] = pool;
  std::uint32_t room = data_room - data_off;
  if (room < persona.rx_buffer_least) {
    log_error("%s: receive queue %u: %u bytes are less than the %u that %s wants of a buffer", port, queue.id, room,
              persona.rx_buffer_least, persona.name.data());
    return -EINVAL;
  }
  if (persona.rx_buffer_most != 0) room = std::min<std::uint32_t>(room, persona.rx_buffer_most);
  queue.room[segment] = static_cast<std::uint16_t>(length == 0 ? room - room % hardware.args.rx_buffer_unit : length);
  if (queue.room[segment] == 0) {
    log_error("%s: receive queue %u, segment %u: the device counts room in units of %u bytes, more than the %u there",
              port, queue.id, segment, hardware.args.rx_buffer_unit, room);
    return -EINVAL;
  }
  queue.offset[segment] = static_cast<std::uint16_t>(data_off);
  const bool computed = hardware.args.refill == Refill::computed && near;
  queue.data_at[segment] = computed ? static_cast<std::uint32_t>(survey.buffer_at) + data_off : 0;
  queue.rearm[segment] = rearm_data(static_cast<std::uint16_t>(data_off), queue.port);
  queue.base_flags[segment] = pinned ? RTE_MBUF_F_EXTERNAL : 0;
  return 0;
}

int setup_split(RxQueue& queue, const rte_eth_rxconf& conf) {
  queue.group = conf.rx_nseg;
  for (std::uint16_t i = 0; i < conf.rx_nseg; ++i) {
    const rte_eth_rxseg_split& segment = conf.rx_seg[i].split;
    if (segment.proto_hdr != 0 && i != 0) {
      log_error("%s: receive queue %u: only the first segment of a split may end with the headers",
                queue.hardware->name.c_str(), queue.id);
      return -ENOTSUP;
    }
    if (segment.proto_hdr != 0) queue.split_at_headers = true;
    const bool last = i + 1 == conf.rx_nseg;
    if (segment.length == 0 && segment.proto_hdr == 0 && !last) {
      log_error("%s: receive queue %u: segment %u of the split has neither length nor protocol",
                queue.hardware->name.c_str(), queue.id, i);
      return -EINVAL;
    }
    if (const int error = setup_segment(queue, i, segment.mp, segment.length, segment.offset); error != 0) return error;
  }
  return 0;
}

int setup_timestamp(RxQueue& queue) {
  queue.timestamp_offset = -1;
  if ((queue.offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP) == 0) return 0;
  if (rte_mbuf_dyn_rx_timestamp_register(&queue.timestamp_offset, &queue.timestamp_flag) != 0) {
    log_error("%s: no room left in the mbuf for a timestamp", queue.hardware->name.c_str());
    return -ENOMEM;
  }
  return 0;
}

int setup_rings(RxQueue& queue, rte_eth_dev* dev, unsigned socket) {
  queue.zone = rte_eth_dma_zone_reserve(dev, "rx_ring", queue.id, sizeof(RxDescriptor) * kMaxRing, 4096,
                                        static_cast<int>(socket));
  queue.software_ring = static_cast<rte_mbuf**>(rte_zmalloc_socket(
      "vnic_rx", sizeof(rte_mbuf*) * (std::size_t{queue.size} + kSoftwareRingTail), 64, static_cast<int>(socket)));
  if (queue.zone == nullptr || queue.software_ring == nullptr) {
    log_error("%s: no memory for a receive ring of %u", queue.hardware->name.c_str(), queue.size);
    return -ENOMEM;
  }
  queue.ring = static_cast<RxDescriptor*>(queue.zone->addr);
  std::fill_n(queue.ring, queue.size, RxDescriptor{});
  return 0;
}

/// Whether frames may take several buffers, asked or not; a negative errno when the driver takes no such queue.
int setup_scatter(RxQueue& queue, const rte_eth_dev* dev) {
  const Hardware& hardware = *queue.hardware;
  const Persona& persona = *hardware.args.persona;
  if (queue.scatter || dev->data->mtu + kFrameOverhead <= queue.room[0]) return 0;
  if (persona.long_frames == LongFrames::refused) {
    log_error("%s: receive queue %u: frames of an MTU of %u do not fit into %u bytes, and %s scatters only when asked",
              hardware.name.c_str(), queue.id, dev->data->mtu, queue.room[0], persona.name.data());
    return -ENOSPC;
  }
  queue.scatter = persona.long_frames == LongFrames::scattered || hardware.args.rx_buffer_unit > 1;
  return 0;
}

int setup(RxQueue& queue, rte_eth_dev* dev, std::uint16_t descriptors, unsigned socket, const rte_eth_rxconf& conf,
          rte_mempool* pool) {
  const Persona& persona = *queue.hardware->args.persona;
  queue.offloads = conf.offloads | dev->data->dev_conf.rxmode.offloads;
  queue.scatter = (queue.offloads & RTE_ETH_RX_OFFLOAD_SCATTER) != 0;
  queue.group = 1;
  const bool split = (queue.offloads & RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT) != 0 && conf.rx_nseg > 0;
  if (split && !queue.scatter && persona.splits != Splits::behind_headers) {
    log_error("%s: receive queue %u: a buffer split needs the scatter offload too", queue.hardware->name.c_str(),
              queue.id);
    return -EINVAL;
  }
  if (const int error = split ? setup_split(queue, conf) : setup_segment(queue, 0, pool, 0, 0); error != 0) {
    return error;
  }
  if (const int error = split ? 0 : setup_scatter(queue, dev); error != 0) return error;
  const std::uint16_t ring = ring_in_force(persona, descriptors);
  queue.size = static_cast<std::uint16_t>(ring - ring % queue.group);
  if (queue.size == 0) {
    log_error("%s: receive queue %u: %s has no ring of %u", queue.hardware->name.c_str(), queue.id, persona.name.data(),
              descriptors);
    return -EINVAL;
  }
  const std::uint16_t fallback = std::min<std::uint16_t>(kDefaultFreeThresh, queue.size / 2);
  std::uint16_t threshold = conf.rx_free_thresh == 0 ? fallback : conf.rx_free_thresh;
  if (threshold >= queue.size) {
    log_error("%s: receive queue %u: rx_free_thresh %u must be below the ring's %u", queue.hardware->name.c_str(),
              queue.id, threshold, queue.size);
    return -EINVAL;
  }
  threshold = static_cast<std::uint16_t>((threshold + queue.group - 1) / queue.group * queue.group);
  queue.free_thresh = std::min<std::uint16_t>(threshold, queue.size);
  if (const int error = setup_timestamp(queue); error != 0) return error;
  return setup_rings(queue, dev, socket);
}

std::uint16_t touched_bytes(const Persona& persona, std::uint64_t offloads) {
  const bool touches = persona.touches_with == 0 || (offloads & persona.touches_with) != 0;
  return touches ? persona.touches_received : std::uint16_t{0};
}

void destroy(RxQueue* queue) {
  rte_memzone_free(queue->zone);
  rte_free(static_cast<void*>(queue->software_ring));
  queue->~RxQueue();
  rte_free(queue);
}

}  // namespace

int rx_queue_setup(rte_eth_dev* dev, std::uint16_t id, std::uint16_t descriptors, unsigned socket,
                   const rte_eth_rxconf* conf, rte_mempool* pool) {
  Device& device = device_of(dev);
  rx_queue_release(dev, id);
  device.iommu.take_eal_memory();
  void* const memory = rte_zmalloc_socket("vnic_rx_queue", sizeof(RxQueue), alignof(RxQueue), static_cast<int>(socket));
  if (memory == nullptr) {
    log_error("%s: no memory for receive queue %u", device.name.c_str(), id);
    return -ENOMEM;
  }
  auto* const queue = new (memory) RxQueue{};
  queue->hardware = &device;
  queue->id = id;
  queue->deferred = conf->rx_deferred_start != 0;
  queue->port = dev->data->port_id;
  queue->align_mask = static_cast<std::uint16_t>(-device.args.rx_align);
  queue->touches = touched_bytes(*device.args.persona, conf->offloads | dev->data->dev_conf.rxmode.offloads);
  queue->inline_engine = device.args.engine == EngineKind::inline_;
  queue->stall_draw = Faults::PollDraw(mix64(device.args.seed) + id * std::uint64_t{4});
  queue->rx_out_draw = Faults::PollDraw(mix64(device.args.seed) + id * std::uint64_t{4} + 1);
  if (const int error = setup(*queue, dev, descriptors, socket, *conf, pool); error != 0) {
    destroy(queue);
    return error;
  }
  device.rx[id] = queue;
  dev->data->rx_queues[id] = queue;
  if (dev->data->dev_started == 0) return 0;
  const int error = adopt_while_running(dev, *queue);
  if (error != 0) rx_queue_release(dev, id);
  return error;
}

void rx_queue_release(rte_eth_dev* dev, std::uint16_t id) {
  Device& device = device_of(dev);
  RxQueue* const queue = id < kMaxQueues ? device.rx[id] : nullptr;
  if (queue == nullptr) return;
  if (queue->started.load(std::memory_order_relaxed)) rx_queue_stop(dev, id);
  device.retire(queue->driver_counts);
  device.retire(queue->device_counts);
  device.retired_parity ^= queue->parity.load(std::memory_order_relaxed);
  device.rx_reset_at[id] = {};
  device.rx[id] = nullptr;
  dev->data->rx_queues[id] = nullptr;
  destroy(queue);
}

}  // namespace warpline::vnic
