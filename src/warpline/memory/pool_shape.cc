// SPDX-License-Identifier: Apache-2.0
#include "warpline/memory/pool_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "warpline/machine/hugepages.h"

namespace warpline::memory {
namespace {

constexpr std::uint32_t kVlanTags = 2 * 4;

/// A mempool flushes a cache at one and a half times its size, and wants as much of the pool's buffers.
constexpr std::uint32_t flush_threshold(std::uint32_t cache) { return cache + cache / 2; }

Error no_memory(const PoolShape& shape) {
  const std::string what = describe(shape);
  const std::vector<machine::HugepagePool> pages = machine::read_hugepages();
  const Bytes needed = pool_bytes(shape.size, shape.data_room);
  if (rte_eal_has_hugepages() == 0) {
    return environment_error(
        what, fmt::format("it needs {} MiB of ordinary memory, more than was set aside", needed.value / kMebibyte),
        fmt::format("reserve hugepages: {}, or use a smaller pool", machine::reserve_advice(pages, needed)));
  }
  const std::uint64_t missing = needed.value - std::min(needed.value, machine::free_bytes(pages).value);
  return environment_error(
      what,
      fmt::format("it needs {} MiB of hugepages{}, {} MiB more than are free", needed.value / kMebibyte,
                  shape.node == runtime::kAnyNode ? "" : fmt::format(" on NUMA node {}", shape.node),
                  missing / kMebibyte),
      fmt::format("{}, or use a smaller pool", machine::reserve_advice(pages, needed)));
}

}  // namespace

std::uint32_t pool_size(const PoolDemand& demand) {
  // A cache holds up to its flush threshold and, in mid-flush, one burst more: twice the size covers both.
  const std::uint64_t most = std::uint64_t{demand.rx_descriptors} + demand.tx_descriptors + demand.in_flight +
                             std::uint64_t{demand.lcores} * 2 * demand.cache;
  const std::uint64_t capped = std::clamp<std::uint64_t>(most, 63, (std::uint64_t{1} << 30) - 1);
  constexpr std::uint64_t kSmall = 65535;
  return static_cast<std::uint32_t>(capped > kSmall ? capped : std::bit_ceil(capped + 1) - 1);
}

std::uint32_t data_room(std::uint16_t mtu) {
  constexpr std::uint32_t kDeviceUnit = 1024;
  const std::uint32_t frame = mtu + RTE_ETHER_HDR_LEN + kVlanTags + RTE_ETHER_CRC_LEN;
  return std::max(2048U, (frame + kDeviceUnit - 1) / kDeviceUnit * kDeviceUnit);
}

Bytes pool_bytes(std::uint32_t size, std::uint32_t data_room) {
  constexpr std::uint64_t kHugepage = 2 * kMebibyte;
  rte_mempool_objsz object{};
  const std::uint32_t element = sizeof(rte_mbuf) + RTE_PKTMBUF_HEADROOM + data_room;
  const std::uint64_t each = rte_mempool_calc_obj_size(element, 0, &object);
  // As rte_mempool_op_calc_mem_size_helper, where no buffer, of 64 KiB at most, is laid across two pages.
  const std::uint64_t a_page = kHugepage / each;
  const std::uint64_t buffers = size / a_page * kHugepage + size % a_page * each;
  // The mempool's ring has a pointer for each; chunks are aligned.
  return {buffers + std::bit_ceil(std::uint64_t{size} + 1) * sizeof(void*) + kHugepage};
}

std::string describe(const PoolShape& shape) {
  return fmt::format("pool \"{}\" of {} buffers of {} bytes", shape.name, shape.size, shape.data_room);
}

Result<void> check_shape(const PoolShape& shape, std::uint64_t obtainable) {
  if (shape.size == 0 || shape.data_room == 0 || shape.data_room + RTE_PKTMBUF_HEADROOM > UINT16_MAX) {
    return usage_error(describe(shape), fmt::format("a buffer has 1 to {} bytes", UINT16_MAX - RTE_PKTMBUF_HEADROOM),
                       "use another data room");
  }
  const Bytes needed = pool_bytes(shape.size, shape.data_room);
  if (rte_eal_has_hugepages() != 0 || needed.value <= obtainable) return {};
  return environment_error(
      describe(shape),
      fmt::format("it needs {} MiB of memory, and {} MiB can be had", needed.value / kMebibyte, obtainable / kMebibyte),
      "use smaller pools: fewer ring slots, smaller bursts or fewer pipelines");
}

Error pool_error(const PoolShape& shape, int code) {
  if (code == EEXIST)
    return usage_error(describe(shape), "there is a pool of that name", "give each a name of its own");
  if (code != ENOMEM) return environment_error(describe(shape), rte_strerror(code), "use a smaller pool");
  return no_memory(shape);
}

std::uint32_t fitting_cache(const PoolShape& shape) {
  std::uint32_t fitting = std::min<std::uint32_t>(shape.cache, RTE_MEMPOOL_CACHE_MAX_SIZE);
  while (flush_threshold(fitting) > shape.size) --fitting;
  return fitting;
}

}  // namespace warpline::memory
