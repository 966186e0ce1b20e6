// SPDX-License-Identifier: Apache-2.0
#define ALLOW_EXPERIMENTAL_API  // rte_pktmbuf_pool_create_extbuf, unchanged since 20.02
#include "warpline/memory/packet_pool.h"

#include <fmt/format.h>

#include <utility>

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_memory.h>
#include <rte_mempool.h>
#include <rte_memzone.h>

#include "warpline/machine/cgroups.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/setup_step.h"

namespace warpline::memory {
namespace {

/// Pages of a GPU's memory, as EAL is told; those that NICs see (64 KiB) are parts of them.
constexpr Bytes kGpuPage{2 << 20};
/// Pages are registered for GPUs one by one: none may have two owners.
constexpr std::size_t kHostPage = 4096;
constexpr std::size_t kCacheLine = RTE_CACHE_LINE_SIZE;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

std::uint16_t element_of(const PoolShape& shape) {
  return static_cast<std::uint16_t>(shape.data_room + RTE_PKTMBUF_HEADROOM);
}

int eal_node(const PoolShape& shape) { return shape.node == runtime::kAnyNode ? SOCKET_ID_ANY : shape.node; }

/// The making of a pool in host memory.
runtime::SetupStep step_of(const PoolShape& shape) {
  return {"making the " + describe(shape), pool_bytes(shape.size, shape.data_room)};
}

/// An error of what `shape` needs, in the words of who met it.
Error for_pool(const PoolShape& shape, Error error) {
  error.what = fmt::format("{}: {}", describe(shape), error.what);
  return error;
}

/// On ordinary pages DPDK lays no buffer across two, because the addresses that devices use could be apart: each begins
/// at the same place of a page of its own, and the first bytes of all frames compete for a 64th of the sets of a cache.
/// Without hugepages EAL knows no physical addresses and devices use virtual ones, so that buffers can follow each
/// other instead.
bool buffers_follow_each_other() { return rte_eal_has_hugepages() == 0; }

/// A memzone of whole pages for all buffers of `pool`, whose owner the pool becomes. Null, with rte_errno set, where
/// there is no such memory.
const rte_memzone* populate(rte_mempool* pool) {
  const bool contiguous = buffers_follow_each_other();
  std::size_t page = 0;
  std::size_t least = 0;
  std::size_t alignment = 0;
  if (!contiguous) rte_mempool_get_page_size(pool, &page);
  const auto shift = static_cast<std::uint32_t>(page == 0 ? 0 : rte_bsf64(page));
  const ssize_t size = rte_mempool_op_calc_mem_size_default(pool, pool->size, shift, &least, &alignment);
  if (size < 0) {
    rte_errno = static_cast<int>(-size);
    return nullptr;
  }
  const rte_memzone* const zone = rte_memzone_reserve_aligned(
      fmt::format("buf_{}", pool->name).c_str(), round_up(static_cast<std::uint64_t>(size), kHostPage), pool->socket_id,
      0, static_cast<unsigned>(std::max(alignment, kHostPage)));
  if (zone == nullptr) return nullptr;
  const auto give_back = [](rte_mempool_memhdr*, void* owner) {
    rte_memzone_free(static_cast<const rte_memzone*>(owner));
  };
  auto* const start = static_cast<char*>(zone->addr);
  void* const owner = const_cast<rte_memzone*>(zone);
  const int added = contiguous ? rte_mempool_populate_iova(pool, start, reinterpret_cast<rte_iova_t>(start), zone->len,
                                                           give_back, owner)
                               : rte_mempool_populate_virt(pool, start, zone->len, page, give_back, owner);
  if (added == static_cast<int>(pool->size)) return zone;
  if (added <= 0) rte_memzone_free(zone);
  rte_errno = ENOMEM;
  return nullptr;
}

/// As rte_pktmbuf_pool_create, up to the memory of the buffers.
Result<rte_mempool*> make_empty(const PoolShape& shape) {
  rte_mempool* const pool =
      rte_mempool_create_empty(shape.name.c_str(), shape.size, sizeof(rte_mbuf) + element_of(shape),
                               fitting_cache(shape), sizeof(rte_pktmbuf_pool_private), eal_node(shape),
                               buffers_follow_each_other() ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0);
  if (pool == nullptr) return pool_error(shape, rte_errno);
  if (const int problem = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), nullptr); problem != 0) {
    rte_mempool_free(pool);
    return pool_error(shape, -problem);
  }
  rte_pktmbuf_pool_private about{};
  about.mbuf_data_room_size = element_of(shape);
  rte_pktmbuf_pool_init(pool, &about);
  return pool;
}

}  // namespace

Result<PacketPool> PacketPool::make(const PoolShape& shape) { return make_in_host(shape, 0, {}); }

Result<PacketPool> PacketPool::make_pinned(const PoolShape& shape, int gpu, const PinMemory& pin) {
  return make_in_host(shape, gpu, pin);
}

/// `pin`: empty if no GPU is to reach the buffers.
Result<PacketPool> PacketPool::make_in_host(const PoolShape& shape, int gpu, const PinMemory& pin) {
  WARPLINE_CHECK(check_shape(shape, machine::obtainable_memory()));
  const runtime::SetupStep step = step_of(shape);
  WARPLINE_TRY(rte_mempool* const made, make_empty(shape));
  PacketPool pool(made);
  const rte_memzone* zone = nullptr;
  if (pin || buffers_follow_each_other()) {
    zone = populate(made);
    if (zone == nullptr) return pool_error(shape, rte_errno);
  } else if (const int added = rte_mempool_populate_default(made); added < 0) {
    return pool_error(shape, -added);
  }
  rte_mempool_obj_iter(made, rte_pktmbuf_init, nullptr);
  if (!pin) return pool;
  auto pinned = pin(gpu, {static_cast<std::byte*>(zone->addr), zone->len});  // in which there is nothing else
  if (!pinned.ok()) return for_pool(shape, std::move(pinned).error());
  pool.pin_ = *std::move(pinned);
  return pool;
}

Result<PacketPool> PacketPool::make_device(const PoolShape& shape, int gpu, const AllocateMemory& allocate) {
  WARPLINE_CHECK(check_shape(shape));
  const std::uint64_t element = round_up(element_of(shape), kCacheLine);
  if (element > UINT16_MAX) return check_shape({shape.name, shape.size, shape.cache, UINT16_MAX, shape.node}).error();
  const Bytes size{round_up(element * shape.size, kGpuPage.value)};
  auto memory = allocate(gpu, size, kGpuPage);
  if (!memory.ok()) return for_pool(shape, std::move(memory).error());
  const std::span<std::byte> bytes = memory->bytes;
  PacketPool pool(nullptr);
  if (rte_extmem_register(bytes.data(), bytes.size(), nullptr, 0, kGpuPage.value) != 0) {
    return environment_error(describe(shape),
                             fmt::format("EAL does not take in memory of GPU {}: {}", gpu, rte_strerror(rte_errno)),
                             "use fewer pools, or -m pinned");
  }
  pool.external_ = *std::move(memory);
  const rte_pktmbuf_extmem buffers{.buf_ptr = bytes.data(),
                                   .buf_iova = reinterpret_cast<std::uintptr_t>(bytes.data()),
                                   .buf_len = bytes.size(),
                                   .elt_size = static_cast<std::uint16_t>(element)};
  pool.pool_ = rte_pktmbuf_pool_create_extbuf(shape.name.c_str(), shape.size, fitting_cache(shape), 0,
                                              element_of(shape), eal_node(shape), &buffers, 1);
  if (pool.pool_ == nullptr) return pool_error(shape, rte_errno);
  return pool;
}

PacketPool::~PacketPool() {
  pin_.reset();
  if (!runtime::Eal::is_ending()) rte_mempool_free(pool_);
  if (!external_.bytes.empty()) rte_extmem_unregister(external_.bytes.data(), external_.bytes.size());
}

void PacketPool::swap(PacketPool& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(pin_, other.pin_);
  std::swap(external_, other.external_);
}

std::uint32_t PacketPool::in_use() const { return rte_mempool_in_use_count(pool_); }

}  // namespace warpline::memory
