// SPDX-License-Identifier: Apache-2.0
#include "vnic/device/stats.h"

#include <algorithm>
#include <cstdio>

namespace warpline::vnic {
namespace {

using Counts = std::array<std::uint64_t, kCounts>;

void add(Counts& sums, const Counters& counters) {
  for (unsigned i = 0; i < kCounts; ++i) sums[i] += counters.get(static_cast<Count>(i));
}

Counts counts_since_reset(const Device& device) {
  Counts counts = total_counts(device);
  for (unsigned i = 0; i < kCounts; ++i) counts[i] -= device.reset_at[i];
  return counts;
}

unsigned xstats_of(const Device& device) { return kCounts + (device.engine.leaves_payload() ? 1 : 0); }

std::uint64_t parity(const Device& device) {
  std::uint64_t parity = device.retired_parity;
  for (const RxQueue* queue : device.rx) {
    if (queue != nullptr) parity ^= queue->parity.load(std::memory_order_relaxed);
  }
  return parity;
}

Device::Traffic traffic(const RxQueue& queue) {
  return {queue.driver_counts.get(Count::rx_packets), queue.driver_counts.get(Count::rx_bytes)};
}

Device::Traffic traffic(const TxQueue& queue) {
  return {queue.device_counts.get(Count::tx_packets), queue.device_counts.get(Count::tx_bytes)};
}

/// `stats`: rte_eth_stats, or since DPDK 25.11 a structure of its own with the same names.
template <typename QueueStats>
void fill_queue_stats(const Device& device, QueueStats& stats) {
  for (std::uint16_t i = 0; i < std::min<std::uint16_t>(kMaxQueues, RTE_ETHDEV_QUEUE_STAT_CNTRS); ++i) {
    if (device.rx[i] != nullptr) {
      const Device::Traffic now = traffic(*device.rx[i]);
      stats.q_ipackets[i] = now.packets - device.rx_reset_at[i].packets;
      stats.q_ibytes[i] = now.bytes - device.rx_reset_at[i].bytes;
    }
    if (device.tx[i] != nullptr) {
      const Device::Traffic now = traffic(*device.tx[i]);
      stats.q_opackets[i] = now.packets - device.tx_reset_at[i].packets;
      stats.q_obytes[i] = now.bytes - device.tx_reset_at[i].bytes;
    }
  }
}

void fill_port_stats(const Device& device, rte_eth_stats& stats) {
  const Counts counts = counts_since_reset(device);
  const auto of = [&](Count count) { return counts[static_cast<unsigned>(count)]; };
  stats.ipackets = of(Count::rx_packets);
  stats.ibytes = of(Count::rx_bytes);
  stats.opackets = of(Count::tx_packets);
  stats.obytes = of(Count::tx_bytes);
  stats.imissed = of(Count::rx_no_descriptor);
  stats.ierrors = of(Count::rx_runt) + of(Count::rx_giant) + of(Count::rx_too_long) + of(Count::rx_iommu_fault) +
                  of(Count::rx_copy_failed);
  stats.oerrors = of(Count::tx_no_peer) + of(Count::tx_link_down) + of(Count::tx_malformed) +
                  of(Count::tx_iommu_fault) + of(Count::tx_copy_failed);
  stats.rx_nombuf = of(Count::rx_no_mbuf);
}

}  // namespace

Counts total_counts(const Device& device) {
  Counts sums = device.retired;
  for (std::uint16_t i = 0; i < kMaxQueues; ++i) {
    if (device.rx[i] != nullptr) {
      add(sums, device.rx[i]->driver_counts);
      add(sums, device.rx[i]->device_counts);
    }
    if (device.tx[i] != nullptr) {
      add(sums, device.tx[i]->driver_counts);
      add(sums, device.tx[i]->device_counts);
    }
  }
  add(sums, device.egress.counts);
  add(sums, device.ingress.counts);
  return sums;
}

#if RTE_VERSION >= RTE_VERSION_NUM(25, 11, 0, 0)
int stats_get(rte_eth_dev* dev, rte_eth_stats* stats, eth_queue_stats* queues) {
  fill_port_stats(device_of(dev), *stats);
  if (queues != nullptr && (device_of(dev).args.persona->lacks & kLacksQueueStats) == 0)
    fill_queue_stats(device_of(dev), *queues);
  return 0;
}
#else
int stats_get(rte_eth_dev* dev, rte_eth_stats* stats) {
  fill_port_stats(device_of(dev), *stats);
  if ((device_of(dev).args.persona->lacks & kLacksQueueStats) == 0) fill_queue_stats(device_of(dev), *stats);
  return 0;
}
#endif

int stats_reset(rte_eth_dev* dev) {
  Device& device = device_of(dev);
  device.reset_at = total_counts(device);
  for (std::uint16_t i = 0; i < kMaxQueues; ++i) {
    if (device.rx[i] != nullptr) device.rx_reset_at[i] = traffic(*device.rx[i]);
    if (device.tx[i] != nullptr) device.tx_reset_at[i] = traffic(*device.tx[i]);
  }
  return 0;
}

int xstats_get(rte_eth_dev* dev, rte_eth_xstat* xstats, unsigned count) {
  const Device& device = device_of(dev);
  const unsigned all = xstats_of(device);
  if (xstats == nullptr || count < all) return static_cast<int>(all);
  const Counts counts = counts_since_reset(device);
  for (unsigned i = 0; i < kCounts; ++i) xstats[i] = {i, counts[i]};
  if (all > kCounts) xstats[kCounts] = {kCounts, parity(device)};
  return static_cast<int>(all);
}

int xstats_get_names(rte_eth_dev* dev, rte_eth_xstat_name* names, unsigned count) {
  const unsigned all = xstats_of(device_of(dev));
  if (names == nullptr || count < all) return static_cast<int>(all);
  for (unsigned i = 0; i < kCounts; ++i) std::snprintf(names[i].name, sizeof names[i].name, "%s", kCountNames[i]);
  if (all > kCounts) std::snprintf(names[kCounts].name, sizeof names[kCounts].name, "rx_parity");
  return static_cast<int>(all);
}

}  // namespace warpline::vnic
