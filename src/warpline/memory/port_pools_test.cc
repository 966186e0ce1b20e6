// SPDX-License-Identifier: Apache-2.0
#include "warpline/memory/port_pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <rte_mbuf.h>

#include "warpline/memory/gpu_memory_testing.h"

namespace warpline::memory {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint32_t kBuffers = 255;

PortPoolsPlan plan_of(MemoryKind memory, std::uint16_t split = 0, std::uint16_t queues = 1) {
  PortPoolsPlan plan;
  plan.name = "pools";
  plan.settings.memory = memory;
  plan.settings.split = split;
  plan.settings.cache = 0;
  plan.size = kBuffers;
  plan.data_room = 2048;
  plan.queues = queues;
  return plan;
}

std::vector<rte_mbuf*> take_all(rte_mempool* pool) {
  std::vector<rte_mbuf*> mbufs;
  while (rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool)) mbufs.push_back(mbuf);
  return mbufs;
}

void give_back(std::vector<rte_mbuf*>& mbufs) {
  rte_pktmbuf_free_bulk(mbufs.data(), static_cast<unsigned>(mbufs.size()));
}

bool within(std::span<std::byte> memory, const void* address, std::size_t length) {
  const auto* const begin = static_cast<const std::byte*>(address);
  return begin >= memory.data() && begin + length <= memory.data() + memory.size();
}

TEST(PinnedPool, HasDirectMbufsInPagesOfItsOwnThatArePinnedWhileItLives) {
  MadeUpGpus gpus;
  std::vector<std::span<std::byte>> pages;
  const PinMemory pin = [&](int gpu, std::span<std::byte> memory) {
    pages.push_back(memory);
    return gpus.memory().pin(gpu, memory);
  };
  {
    auto first = PacketPool::make_pinned({"pinned0", kBuffers, 32, 2048}, 0, pin);
    auto second = PacketPool::make_pinned({"pinned1", kBuffers, 32, 9280}, 0, pin);
    ASSERT_TRUE(first.ok()) << first.error().message();
    ASSERT_TRUE(second.ok()) << second.error().message();
    ASSERT_EQ(pages.size(), 2U);
    for (const std::span<std::byte> memory : pages) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 4096, 0U);
      EXPECT_EQ(memory.size() % 4096, 0U);
    }
    EXPECT_TRUE(pages[0].data() >= pages[1].data() + pages[1].size() ||
                pages[1].data() >= pages[0].data() + pages[0].size())
        << "no page is pinned twice";
    auto mbufs = take_all(second->get());
    EXPECT_EQ(mbufs.size(), kBuffers);
    for (const rte_mbuf* const mbuf : mbufs) {
      EXPECT_TRUE(RTE_MBUF_DIRECT(mbuf));
      EXPECT_TRUE(within(pages[1], mbuf, sizeof(rte_mbuf)));
      EXPECT_TRUE(within(pages[1], mbuf->buf_addr, mbuf->buf_len));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(rte_pktmbuf_mtod(mbuf, void*)) % 64, 0U);
    }
    EXPECT_EQ(second->in_use(), kBuffers);
    give_back(mbufs);
    EXPECT_EQ(second->in_use(), 0U);
    EXPECT_EQ(gpus.pinned, pages[0].size() + pages[1].size());
    *first = *std::move(second);
    EXPECT_EQ(first->size(), kBuffers);
  }
  EXPECT_EQ(gpus.pinned, 0U);
}

TEST(PinnedPool, GivesMemoryAndNameBackWhenPinningIsRefused) {
  MadeUpGpus gpus;
  for (int i = 0; i < 50; ++i) {
    gpus.pins_left = 0;
    const auto refused = PacketPool::make_pinned({"refused", 4095, 0, 2048}, 0, gpus.memory().pin);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::environment);
    EXPECT_THAT(refused.error().message(),
                HasSubstr("pool \"refused\" of 4095 buffers of 2048 bytes: host memory: the memlock limit is 8 MiB; "
                          "ulimit -l unlimited"));
  }
  gpus.pins_left = 1;
  EXPECT_TRUE(PacketPool::make_pinned({"refused", 4095, 0, 2048}, 0, gpus.memory().pin).ok());
}

TEST(PinnedPool, WithoutMemorySaysWhatIsMissing) {
  MadeUpGpus gpus;
  const auto pool = PacketPool::make_pinned({"huge", (1 << 20) - 1, 0, 2048}, 0, gpus.memory().pin);
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.error().kind, ErrorKind::environment);
  EXPECT_THAT(pool.error().message(), HasSubstr("nr_hugepages"));
  EXPECT_EQ(gpus.pinned, 0U);
}

TEST(DevicePool, HasEveryBufferInTheGpusMemoryAndTouchesNoneOfIt) {
  MadeUpGpus gpus;
  // Memory that a look at would be a fault.
  const AllocateMemory untouchable = [&](int gpu, Bytes size, Bytes alignment) -> Result<OwnedMemory> {
    WARPLINE_TRY(OwnedMemory memory, gpus.memory().allocate(gpu, size, alignment));
    EXPECT_EQ(mprotect(memory.bytes.data(), memory.bytes.size(), PROT_NONE), 0);
    return memory;
  };
  {
    auto pool = PacketPool::make_device({"device", kBuffers, 32, 2048}, 3, untouchable);
    ASSERT_TRUE(pool.ok()) << pool.error().message();
    EXPECT_THAT(gpus.gpus, ElementsAre(3));
    EXPECT_EQ(gpus.allocated, pool->external().size());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pool->external().data()) % (2 << 20), 0U);
    auto mbufs = take_all(pool->get());
    EXPECT_EQ(mbufs.size(), kBuffers);
    std::vector<std::uintptr_t> starts;
    for (rte_mbuf* const mbuf : mbufs) {
      EXPECT_TRUE(RTE_MBUF_HAS_PINNED_EXTBUF(mbuf));
      EXPECT_TRUE(within(pool->external(), mbuf->buf_addr, mbuf->buf_len));
      EXPECT_GE(mbuf->buf_len, 2048 + RTE_PKTMBUF_HEADROOM);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(rte_pktmbuf_mtod(mbuf, void*)) % 64, 0U);
      EXPECT_EQ(mbuf->buf_iova, reinterpret_cast<std::uintptr_t>(mbuf->buf_addr));
      starts.push_back(reinterpret_cast<std::uintptr_t>(mbuf->buf_addr));
    }
    std::sort(starts.begin(), starts.end());
    for (std::size_t i = 1; i < starts.size(); ++i) EXPECT_GE(starts[i] - starts[i - 1], 2048 + RTE_PKTMBUF_HEADROOM);
    EXPECT_EQ(pool->in_use(), kBuffers);
    give_back(mbufs);
    EXPECT_EQ(pool->in_use(), 0U);
  }
  EXPECT_EQ(gpus.allocated, 0U);
}

TEST(DevicePool, CanBeMadeAgainAndAgain) {
  MadeUpGpus gpus;
  for (int i = 0; i < 200; ++i) {
    auto pool = PacketPool::make_device({"again", kBuffers, 32, 9280}, 0, gpus.memory().allocate);
    ASSERT_TRUE(pool.ok()) << i << ": " << pool.error().message();
  }
  EXPECT_EQ(gpus.allocated, 0U);
}

TEST(DevicePool, LeavesNothingBehindWhenAnythingIsRefused) {
  MadeUpGpus gpus;
  gpus.allocations_left = 0;
  const auto full = PacketPool::make_device({"full", kBuffers, 0, 2048}, 1, gpus.memory().allocate);
  ASSERT_FALSE(full.ok());
  EXPECT_THAT(full.error().message(), HasSubstr("pool \"full\" of 255 buffers of 2048 bytes: GPU memory: of 8 MiB 1"));
  gpus.allocations_left = SIZE_MAX;
  const auto first = PacketPool::make_device({"name", kBuffers, 0, 2048}, 0, gpus.memory().allocate);
  ASSERT_TRUE(first.ok());
  const std::size_t taken = gpus.allocated;
  const auto second = PacketPool::make_device({"name", kBuffers, 0, 2048}, 0, gpus.memory().allocate);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::usage);
  EXPECT_EQ(gpus.allocated, taken);
  for (const std::uint32_t room : {0U, 65'400U, 65'535U}) {
    const auto odd = PacketPool::make_device({"odd", kBuffers, 0, room}, 0, gpus.memory().allocate);
    ASSERT_FALSE(odd.ok());
    EXPECT_EQ(odd.error().kind, ErrorKind::usage);
  }
}

TEST(PortPools, HostMemoryAsksNoGpu) {
  MadeUpGpus gpus;
  const auto pools = PortPools::make(plan_of(MemoryKind::host, 60), gpus.memory());
  ASSERT_TRUE(pools.ok()) << pools.error().message();
  EXPECT_EQ(pools->pools().size(), 2U);
  EXPECT_EQ(gpus.pinned, 0U);
  EXPECT_TRUE(pools->external().empty());
  EXPECT_EQ(pools->gpu_bytes().value, 0U);
  ASSERT_EQ(pools->queues().size(), 1U);
  EXPECT_EQ(pools->queues()[0].split, 60);
  EXPECT_EQ(rte_pktmbuf_data_room_size(pools->queues()[0].header), 64 + RTE_PKTMBUF_HEADROOM);
  EXPECT_EQ(rte_pktmbuf_data_room_size(pools->queues()[0].payload), 2048 + RTE_PKTMBUF_HEADROOM);
}

TEST(PortPools, OneForAllQueuesOrOneEach) {
  MadeUpGpus gpus;
  const auto shared = PortPools::make(plan_of(MemoryKind::pinned, 0, 4), gpus.memory());
  ASSERT_TRUE(shared.ok());
  EXPECT_EQ(shared->queues().size(), 1U);
  PortPoolsPlan each = plan_of(MemoryKind::device, 64, 3);
  each.name = "each";
  each.settings.sharing = PoolSharing::queue;
  each.gpus = {0, 2, 1};
  const auto apart = PortPools::make(each, gpus.memory());
  ASSERT_TRUE(apart.ok()) << apart.error().message();
  EXPECT_EQ(apart->queues().size(), 3U);
  EXPECT_EQ(apart->pools().size(), 6U);
  EXPECT_EQ(apart->external().size(), 3U);
  EXPECT_EQ(apart->gpu_bytes().value, gpus.allocated);
  EXPECT_THAT(gpus.gpus, ElementsAre(0, 1, 2));
  EXPECT_NE(apart->queues()[0].payload, apart->queues()[1].payload);
  EXPECT_GT(gpus.pinned, 0U) << "the headers beside memory of a GPU are for it to read too";
}

TEST(PortPools, GivesAllBackWhenTheLastPoolIsRefused) {
  MadeUpGpus gpus;
  PortPoolsPlan plan = plan_of(MemoryKind::device, 64, 3);
  plan.settings.sharing = PoolSharing::queue;
  gpus.pins_left = 2;
  const auto refused = PortPools::make(plan, gpus.memory());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("pool \"pools.2.head\""));
  EXPECT_EQ(gpus.allocated, 0U);
  EXPECT_EQ(gpus.pinned, 0U);
  gpus.pins_left = SIZE_MAX;
  EXPECT_TRUE(PortPools::make(plan, gpus.memory()).ok());
}

TEST(PortPools, HostBytesAreEnoughForThePools) {
  for (const MemoryKind memory : {MemoryKind::host, MemoryKind::pinned, MemoryKind::device}) {
    for (const std::uint16_t split : {0, 60}) {
      MadeUpGpus gpus;
      const PortPoolsPlan plan = plan_of(memory, split);
      const auto pools = PortPools::make(plan, gpus.memory());
      ASSERT_TRUE(pools.ok());
      std::uint64_t taken = 0;
      for (const PacketPool& pool : pools->pools()) {
        rte_mempool_mem_iter(
            pool.get(),
            [](rte_mempool*, void* sum, rte_mempool_memhdr* chunk, unsigned) {
              *static_cast<std::uint64_t*>(sum) += chunk->len;
            },
            &taken);
      }
      EXPECT_GE(host_bytes(plan).value, taken);
      EXPECT_LE(host_bytes(plan).value, taken + taken / 50 + (8 << 20));
    }
  }
}

TEST(GpuMemory, OfThisMachineWorksOrSaysWhyNot) {
  const GpuMemory gpus = GpuMemory::of_machine();
  const auto pinned = PacketPool::make_pinned({"real0", kBuffers, 0, 2048}, 0, gpus.pin);
  const auto device = PacketPool::make_device({"real1", kBuffers, 0, 2048}, 0, gpus.allocate);
  EXPECT_EQ(pinned.ok(), device.ok());
  if (pinned.ok()) return;
  for (const Error& error : {pinned.error(), device.error()}) {
    EXPECT_EQ(error.kind, ErrorKind::environment);
    EXPECT_THAT(error.what, HasSubstr("of 255 buffers of 2048 bytes"));
    EXPECT_FALSE(error.fix.empty());
  }
}

}  // namespace
}  // namespace warpline::memory
