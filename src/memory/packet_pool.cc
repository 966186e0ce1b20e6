// SPDX-License-Identifier: Apache-2.0
#include "memory/packet_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_mempool.h>

#include "runtime/hugepages.h"
#include "runtime/lcore_plan.h"

namespace warpline {
namespace {

constexpr std::uint32_t kVlanTags = 2 * 4;
constexpr std::uint64_t kMebibyte = 1 << 20;

/// A mempool flushes a cache at one and a half times its size, and wants as much of the pool's buffers.
constexpr std::uint32_t flush_threshold(std::uint32_t cache) { return cache + cache / 2; }

Error no_memory(const std::string& what, std::uint32_t size, std::uint32_t data_room, int node) {
  const std::vector<HugepagePool> pages = read_hugepages();
  if (rte_eal_has_hugepages() == 0) {
    const Bytes needed = pool_bytes(size, data_room);
    return environment_error(
        what, fmt::format("it needs {} MiB of ordinary memory, more than was set aside", needed.value / kMebibyte),
        fmt::format("reserve hugepages: `{}`, or use a smaller pool", reserve_command(pages, needed)));
  }
  const Bytes needed = pool_bytes(size, data_room, Bytes{2 * kMebibyte});
  const std::uint64_t missing = needed.value - std::min(needed.value, free_bytes(pages).value);
  return environment_error(
      what,
      fmt::format("it needs {} MiB of hugepages{}, {} MiB more than are free", needed.value / kMebibyte,
                  node == kAnyNode ? "" : fmt::format(" on NUMA node {}", node), missing / kMebibyte),
      fmt::format("`{}`, or use a smaller pool", reserve_command(pages, needed)));
}

}  // namespace

std::uint32_t pool_size(const PoolDemand& demand) {
  // A cache holds up to its flush threshold and, in mid-flush, one burst more: twice the size covers both.
  const std::uint64_t most = std::uint64_t{demand.rx_descriptors} + demand.tx_descriptors + demand.in_flight +
                             std::uint64_t{demand.lcores} * 2 * demand.cache;
  const std::uint64_t capped = std::clamp<std::uint64_t>(most, 63, (std::uint64_t{1} << 30) - 1);
  return static_cast<std::uint32_t>(std::bit_ceil(capped + 1) - 1);
}

std::uint32_t data_room(std::uint16_t mtu) {
  constexpr std::uint32_t kCacheLine = 64;
  const std::uint32_t frame = mtu + RTE_ETHER_HDR_LEN + kVlanTags + RTE_ETHER_CRC_LEN;
  return std::max(2048U, (frame + kCacheLine - 1) / kCacheLine * kCacheLine);
}

Bytes pool_bytes(std::uint32_t size, std::uint32_t data_room, Bytes page) {
  rte_mempool_objsz object{};
  const std::uint32_t element = sizeof(rte_mbuf) + RTE_PKTMBUF_HEADROOM + data_room;
  const std::uint64_t each = rte_mempool_calc_obj_size(element, 0, &object);
  // As rte_mempool_op_calc_mem_size_helper: what fits into a page is not laid across two.
  const std::uint64_t pages = each <= page.value ? (size + page.value / each - 1) / (page.value / each)
                                                 : size * ((each + page.value - 1) / page.value);
  // The mempool's ring has a pointer for each; chunks are aligned.
  return {pages * page.value + std::bit_ceil(std::uint64_t{size} + 1) * sizeof(void*) + 2 * kMebibyte};
}

Result<PacketPool> PacketPool::make(const std::string& name, std::uint32_t size, std::uint32_t cache,
                                    std::uint32_t data_room, int node) {
  const std::string what = fmt::format("pool \"{}\" of {} buffers of {} bytes", name, size, data_room);
  if (size == 0 || data_room == 0 || data_room + RTE_PKTMBUF_HEADROOM > UINT16_MAX) {
    return usage_error(what, fmt::format("a buffer has 1 to {} bytes", UINT16_MAX - RTE_PKTMBUF_HEADROOM),
                       "use another data room");
  }
  std::uint32_t fitting = std::min<std::uint32_t>(cache, RTE_MEMPOOL_CACHE_MAX_SIZE);
  while (flush_threshold(fitting) > size) --fitting;
  rte_mempool* const pool = rte_pktmbuf_pool_create(name.c_str(), size, fitting, 0,
                                                    static_cast<std::uint16_t>(data_room + RTE_PKTMBUF_HEADROOM),
                                                    node == kAnyNode ? SOCKET_ID_ANY : node);
  if (pool != nullptr) return PacketPool(pool);
  const int code = rte_errno;
  if (code == EEXIST) return usage_error(what, "there is a pool of that name", "give each a name of its own");
  if (code != ENOMEM) return environment_error(what, rte_strerror(code), "use a smaller pool");
  return no_memory(what, size, data_room, node);
}

PacketPool& PacketPool::operator=(PacketPool&& other) noexcept {
  std::swap(pool_, other.pool_);
  return *this;
}

PacketPool::~PacketPool() { rte_mempool_free(pool_); }

std::uint32_t PacketPool::in_use() const { return rte_mempool_in_use_count(pool_); }

}  // namespace warpline
