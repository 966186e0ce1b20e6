// SPDX-License-Identifier: Apache-2.0
#include "warpline/memory/packet_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>

#include "warpline/base/property_testing.h"
#include "warpline/runtime/eal_environment.h"
#include "warpline/runtime/lcore_plan.h"

namespace warpline::memory {
namespace {

using testing::HasSubstr;

const auto* const kEal = testing::AddGlobalTestEnvironment(new runtime::EalEnvironment(1, Bytes{64 << 20}));

WARPLINE_PROPERTY(PoolSize, HoldsAllThatCanBeOutsideAndWastesNothingOfTheRing, ()) {
  PoolDemand demand;
  demand.rx_descriptors = *rc::gen::inRange(0U, 65536U);
  demand.tx_descriptors = *rc::gen::inRange(0U, 65536U);
  demand.in_flight = *rc::gen::inRange(0U, 65536U);
  demand.lcores = *rc::gen::inRange(1U, 129U);
  demand.cache = *rc::gen::inRange(0U, 513U);
  const std::uint32_t size = pool_size(demand);
  const std::uint64_t most = std::uint64_t{demand.rx_descriptors} + demand.tx_descriptors + demand.in_flight +
                             std::uint64_t{demand.lcores} * 2 * demand.cache;
  if (most < 65536) {
    RC_ASSERT(std::has_single_bit(size + 1));
  } else {
    RC_ASSERT(size == most);
  }
  RC_ASSERT(size >= demand.rx_descriptors + demand.tx_descriptors + demand.in_flight +
                        demand.lcores * (demand.cache + demand.cache / 2));
}

TEST(PoolSize, OfTheDefaultForward) {
  EXPECT_EQ(pool_size({.rx_descriptors = 1024, .tx_descriptors = 1024, .in_flight = 1024, .lcores = 1, .cache = 256}),
            4095U);
}

// 1024 slots of 512 packets: 2^n - 1 would be twice as many buffers.
TEST(PoolSize, OfALargePoolIsExact) {
  EXPECT_EQ(
      pool_size({.rx_descriptors = 1024, .tx_descriptors = 1024, .in_flight = 1024 * 512, .lcores = 3, .cache = 256}),
      1024U + 1024U + 1024U * 512U + 3U * 2U * 256U);
}

TEST(PoolSize, NeverOverflows) {
  EXPECT_EQ(pool_size({UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, 512}), (1U << 30) - 1);
}

TEST(DataRoom, HoldsAWholeFrameOfTheMtu) {
  EXPECT_EQ(data_room(1500), 2048U);
  EXPECT_EQ(data_room(68), 2048U);
  EXPECT_EQ(data_room(4000), 4096U);
  EXPECT_EQ(data_room(9000), 9216U);
  EXPECT_EQ(data_room(9216), 10240U);
  for (std::uint32_t mtu = 68; mtu <= 9216; ++mtu)
    ASSERT_GE(data_room(static_cast<std::uint16_t>(mtu)) / 1024 * 1024, mtu + 14 + 8 + 4);
}

TEST(PacketPool, CountsWhatIsInUse) {
  auto pool = PacketPool::make("count", 1023, 32, 2048, runtime::kAnyNode);
  ASSERT_TRUE(pool.ok()) << pool.error().message();
  EXPECT_EQ(pool->size(), 1023U);
  EXPECT_EQ(pool->in_use(), 0U);
  rte_mbuf* buffers[100];
  ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool->get(), buffers, 100), 0);
  EXPECT_EQ(pool->in_use(), 100U);
  EXPECT_EQ(rte_pktmbuf_tailroom(buffers[0]), 2048);
  rte_pktmbuf_free_bulk(buffers, 100);
  EXPECT_EQ(pool->in_use(), 0U);
}

TEST(PacketPool, GivesOutEveryBuffer) {
  auto pool = PacketPool::make("all", 63, 256, 9280, runtime::kAnyNode);  // the cache is cut to fit
  ASSERT_TRUE(pool.ok()) << pool.error().message();
  std::vector<rte_mbuf*> buffers;
  while (rte_mbuf* const buffer = rte_pktmbuf_alloc(pool->get())) buffers.push_back(buffer);
  EXPECT_EQ(buffers.size(), 63U);
  rte_pktmbuf_free_bulk(buffers.data(), static_cast<unsigned>(buffers.size()));
}

TEST(PacketPool, FreesItsMemoryAndItsName) {
  for (int i = 0; i < 20; ++i) {
    auto pool = PacketPool::make("again", 4095, 256, 2048, runtime::kAnyNode);
    ASSERT_TRUE(pool.ok()) << i << ": " << pool.error().message();
    auto moved = *std::move(pool);
    EXPECT_EQ(moved.in_use(), 0U);
  }
}

TEST(PacketPool, PoolBytesIsEnoughAndNotMuchMore) {
  for (const std::uint32_t room : {2048U, 9280U}) {
    auto pool = PacketPool::make("bytes", 4095, 256, room, runtime::kAnyNode);
    ASSERT_TRUE(pool.ok());
    std::uint64_t taken = 0;
    rte_mempool_mem_iter(
        pool->get(),
        [](rte_mempool*, void* sum, rte_mempool_memhdr* chunk, unsigned) {
          *static_cast<std::uint64_t*>(sum) += chunk->len;
        },
        &taken);
    EXPECT_GE(pool_bytes(4095, room).value, taken);
    EXPECT_LE(pool_bytes(4095, room).value, taken + taken / 50 + (3 << 20));
  }
}

/// Buffers that all began at the same place of a page would share 64 of 4096 sets of a cache with lines of 64 bytes.
TEST(PacketPool, BuffersBeginAllOverTheSetsOfACache) {
  constexpr std::uint32_t kBuffers = 1023;
  auto pool = PacketPool::make("sets", kBuffers, 0, 2048, runtime::kAnyNode);
  ASSERT_TRUE(pool.ok()) << pool.error().message();
  std::set<std::uintptr_t> places;
  std::vector<rte_mbuf*> buffers(kBuffers);
  ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool->get(), buffers.data(), kBuffers), 0);
  for (const rte_mbuf* const buffer : buffers) {
    places.insert(reinterpret_cast<std::uintptr_t>(buffer->buf_addr) % 4096 / 64);
    EXPECT_EQ(rte_mbuf_iova_get(buffer), reinterpret_cast<rte_iova_t>(buffer->buf_addr));
  }
  rte_pktmbuf_free_bulk(buffers.data(), kBuffers);
  EXPECT_EQ(places.size(), 64U);
}

TEST(PacketPool, WithoutMemorySaysWhatIsMissingAndHowToMendIt) {
  const auto pool = PacketPool::make("huge", (1 << 20) - 1, 0, 2048, runtime::kAnyNode);
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.error().kind, ErrorKind::environment);
  EXPECT_THAT(pool.error().message(), HasSubstr("it needs 23"));
  EXPECT_THAT(pool.error().message(), HasSubstr("nr_hugepages"));
}

// A buffer of 2048 bytes takes at least 2304, with headroom and header: a million of them are 2304 MiB and more.
TEST(PacketPool, RefusesWhatTheMachineHasNoMemoryFor) {
  const PoolShape shape{.name = "large", .size = 1 << 20, .data_room = 2048};
  EXPECT_TRUE(check_shape(shape, std::uint64_t{3} << 30));
  const auto refused = check_shape(shape, std::uint64_t{2} << 30);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::environment);
  EXPECT_THAT(refused.error().message(), HasSubstr("and 2048 MiB can be had; use smaller pools: fewer ring slots"));
}

TEST(PacketPool, RefusesWhatABufferCannotBe) {
  for (const std::uint32_t room : {0U, 65535U, 1U << 20}) {
    const auto pool = PacketPool::make("room", 63, 0, room, runtime::kAnyNode);
    ASSERT_FALSE(pool.ok());
    EXPECT_EQ(pool.error().kind, ErrorKind::usage);
  }
  const auto first = PacketPool::make("twice", 63, 0, 2048, runtime::kAnyNode);
  const auto second = PacketPool::make("twice", 63, 0, 2048, runtime::kAnyNode);
  ASSERT_TRUE(first.ok());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::usage);
}

/// Makes a pool, writes to it, tells DPDK's end and lets the pool go. Exits with what is left there.
[[noreturn]] void leave_a_pool_to_the_end() {
  char* bytes = nullptr;
  {
    const auto pool = PacketPool::make("left", 1023, 0, 2048, runtime::kAnyNode);
    rte_mbuf* const buffer = rte_pktmbuf_alloc(pool->get());
    bytes = rte_pktmbuf_append(buffer, 1);
    *bytes = 7;
    rte_pktmbuf_free(buffer);
    runtime::Eal::begin_end();
  }
  std::_Exit(*bytes);
}

TEST(PacketPoolDeathTest, IsNotClearedForDpdkThatEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(leave_a_pool_to_the_end(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace warpline::memory
