// SPDX-License-Identifier: Apache-2.0
#include "warpline/memory/port_pools.h"

#include <fmt/format.h>

#include <utility>

namespace warpline::memory {
namespace {

constexpr std::uint32_t kHeaderUnit = RTE_CACHE_LINE_SIZE;

std::uint16_t pool_count(const PortPoolsPlan& plan) {
  return plan.settings.sharing == PoolSharing::queue ? plan.queues : std::uint16_t{1};
}

std::uint32_t header_room(std::uint16_t split) { return (split + kHeaderUnit - 1) / kHeaderUnit * kHeaderUnit; }

Result<PacketPool> make_pool(const PoolShape& shape, MemoryKind memory, int gpu, const GpuMemory& gpus) {
  switch (memory) {
    case MemoryKind::pinned:
      return PacketPool::make_pinned(shape, gpu, gpus.pin);
    case MemoryKind::device:
      return PacketPool::make_device(shape, gpu, gpus.allocate);
    case MemoryKind::host:
      break;
  }
  return PacketPool::make(shape);
}

}  // namespace

Bytes host_bytes(const PortPoolsPlan& plan) {
  // Mbufs of a GPU's buffers are without any themselves.
  const std::uint32_t room = plan.settings.memory == MemoryKind::device ? 0 : plan.data_room;
  std::uint64_t each = pool_bytes(plan.size, room).value;
  if (plan.settings.split != 0) each += pool_bytes(plan.size, header_room(plan.settings.split)).value;
  return {each * pool_count(plan)};
}

Result<PortPools> PortPools::make(const PortPoolsPlan& plan, const GpuMemory& gpus) {
  PortPools made;
  const PoolSettings& settings = plan.settings;
  const std::uint16_t count = pool_count(plan);
  for (std::uint16_t i = 0; i < count; ++i) {
    PoolShape shape{.name = count == 1 ? plan.name : fmt::format("{}.{}", plan.name, i),
                    .size = plan.size,
                    .cache = settings.cache,
                    .data_room = plan.data_room,
                    .node = plan.node};
    const int gpu = plan.gpus.empty() ? 0 : plan.gpus[i % plan.gpus.size()];
    WARPLINE_TRY(PacketPool payload, make_pool(shape, settings.memory, gpu, gpus));
    port::RxPools pools{.payload = payload.get()};
    made.pools_.push_back(std::move(payload));
    if (settings.split != 0) {
      shape.name += ".head";
      shape.data_room = header_room(settings.split);
      const MemoryKind memory = settings.memory == MemoryKind::host ? MemoryKind::host : MemoryKind::pinned;
      WARPLINE_TRY(PacketPool header, make_pool(shape, memory, gpu, gpus));
      pools.header = header.get();
      pools.split = settings.split;
      made.pools_.push_back(std::move(header));
    }
    made.queues_.push_back(pools);
  }
  return made;
}

std::vector<std::span<std::byte>> PortPools::external() const {
  std::vector<std::span<std::byte>> memory;
  for (const PacketPool& pool : pools_) {
    if (!pool.external().empty()) memory.push_back(pool.external());
  }
  return memory;
}

Bytes PortPools::gpu_bytes() const {
  std::uint64_t bytes = 0;
  for (const std::span<std::byte> memory : external()) bytes += memory.size();
  return {bytes};
}

std::uint32_t PortPools::in_use() const {
  std::uint32_t buffers = 0;
  for (const PacketPool& pool : pools_) buffers += pool.in_use();
  return buffers;
}

}  // namespace warpline::memory
