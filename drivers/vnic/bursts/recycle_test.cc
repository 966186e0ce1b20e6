// SPDX-License-Identifier: Apache-2.0
#include "vnic/bursts/recycle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include <rte_memory.h>
#include <rte_memzone.h>

#include "vnic/api/driver_testing.h"
#include "vnic/common/limits.h"
#include "vnic/rings/posted_set.h"
#include "warpline/base/property_testing.h"

namespace warpline::vnic {
namespace {

constexpr std::uint16_t kBurst = 32;

/// Receives a burst out of a port that has no end of frames, and sends it back.
std::uint16_t forward(Port& port) {
  rte_mbuf* mbufs[kBurst];
  const std::uint16_t count = rte_eth_rx_burst(port.id, 0, mbufs, kBurst);
  EXPECT_EQ(rte_eth_tx_burst(port.id, 0, mbufs, count), count);
  return count;
}

void recycle_everything(const PortSetup& setup) {
  const Pool pool(1024);
  {
    Port port("net_vnic0", "wire=static");
    ASSERT_EQ(port.start(pool.get(), setup), 0);
    std::uint64_t recycled = 0;
    for (unsigned round = 0; round < 1000; ++round) {
      recycled += rte_net_vnic_recycle_mbufs(port.id, 0, port.id, 0);
      ASSERT_EQ(forward(port), kBurst);
    }
    std::map<std::string, std::uint64_t> counts = port.counts();
    EXPECT_EQ(counts["recycled"], recycled);
    // All but what fills the rings at first.
    EXPECT_GT(recycled, 1000U * kBurst - 2U * setup.ring);
    EXPECT_EQ(counts["rx_no_mbuf"], 0U);
  }
  EXPECT_EQ(pool.free(), pool.size());
}

TEST(RecycleTest, WhatIsSentIsReceivedIntoAgainWithoutThePool) {
  for (const std::uint16_t ring : {128, 150, 511}) {
    recycle_everything({.ring = ring});
    recycle_everything({.ring = ring, .tx_offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE});
  }
}

TEST(RecycleTest, FramesStayByteExact) {
  const Pool pool(1024);
  Port port("net_vnic0");
  ASSERT_EQ(port.start(pool.get(), {.ring = 128, .rx_free_thresh = 64, .tx_free_thresh = 64, .tx_rs_thresh = 16}), 0);
  std::uint8_t next = 0;
  std::uint8_t expected = 0;
  for (unsigned round = 0; round < 500; ++round) {
    rte_net_vnic_recycle_mbufs(port.id, 0, port.id, 0);
    for (unsigned i = 0; i < 20; ++i) ASSERT_EQ(port.send(pool.make(std::vector<std::uint8_t>(100, next++))), 1);
    for (rte_mbuf* const mbuf : port.receive()) {
      ASSERT_EQ(rte_pktmbuf_mtod(mbuf, const std::uint8_t*)[50], expected++);
      ASSERT_EQ(mbuf->refcnt, 1);
      ASSERT_EQ(mbuf->nb_segs, 1);
      rte_pktmbuf_free(mbuf);
    }
  }
  EXPECT_EQ(next, expected);
  EXPECT_GT(port.counts()["recycled"], 0U);
}

TEST(RecycleTest, CountsWhyItRefuses) {
  const Pool pool(1024);
  const Pool other(1024);
  {
    Port port("net_vnic0", "wire=static");
    ASSERT_EQ(port.start(pool.get(), {.ring = 128, .tx_free_thresh = 64, .tx_rs_thresh = 32}), 0);
    const std::vector<std::uint8_t> frame(60, 2);
    EXPECT_EQ(rte_net_vnic_recycle_mbufs(port.id, 0, port.id, 0), 0);
    EXPECT_EQ(port.counts()["recycle_refused_threshold"], 1U);
    for (unsigned i = 0; i < 32; ++i) ASSERT_EQ(port.send(other.make(frame)), 1);
    EXPECT_EQ(rte_net_vnic_recycle_mbufs(port.id, 0, port.id, 0), 0);
    EXPECT_EQ(port.counts()["recycle_refused_full"], 1U);

    rte_mbuf* mbufs[kBurst];
    ASSERT_EQ(rte_eth_rx_burst(port.id, 0, mbufs, kBurst), kBurst);
    EXPECT_EQ(rte_net_vnic_recycle_mbufs(port.id, 0, port.id, 0), 0);
    EXPECT_EQ(port.counts()["recycle_refused_pool"], 32U);
    EXPECT_EQ(other.free(), other.size());

    rte_mbuf_refcnt_update(mbufs[0], 1);
    ASSERT_EQ(rte_eth_tx_burst(port.id, 0, mbufs, kBurst), kBurst);
    EXPECT_EQ(rte_net_vnic_recycle_mbufs(port.id, 0, port.id, 0), kBurst - 1);
    EXPECT_EQ(port.counts()["recycle_refused_shared"], 1U);
    rte_pktmbuf_free(mbufs[0]);
  }
  EXPECT_EQ(pool.free(), pool.size());
}

TEST(RecycleTest, DoesNothingWhereThereIsNoSuchQueueOrPort) {
  const Pool pool;
  Port port("net_vnic0", "wire=static");
  EXPECT_EQ(rte_net_vnic_recycle_mbufs(port.id, 0, port.id, 0), 0);
  ASSERT_EQ(port.start(pool.get()), 0);
  EXPECT_EQ(rte_net_vnic_recycle_mbufs(port.id, 1, port.id, 0), 0);
  EXPECT_EQ(rte_net_vnic_recycle_mbufs(port.id, 0, port.id, 400), 0);
  EXPECT_EQ(rte_net_vnic_recycle_mbufs(9999, 0, port.id, 0), 0);
  ASSERT_EQ(rte_eth_dev_stop(port.id), 0);
  EXPECT_EQ(rte_net_vnic_recycle_mbufs(port.id, 0, port.id, 0), 0);
}

TEST(RecycleTest, MovesAllWholeBatchesThatThereIsRoomFor) {
  const Pool pool(1024);
  Port port("net_vnic0", "wire=static");
  ASSERT_EQ(port.start(pool.get(), {.ring = 256, .rx_free_thresh = 128, .tx_free_thresh = 32, .tx_rs_thresh = 16}), 0);
  rte_mbuf* mbufs[100];
  ASSERT_EQ(rte_eth_rx_burst(port.id, 0, mbufs, 100), 100);
  ASSERT_EQ(rte_eth_tx_burst(port.id, 0, mbufs, 100), 100);
  EXPECT_EQ(rte_net_vnic_recycle_mbufs(port.id, 0, port.id, 0), 96);
  EXPECT_EQ(rte_net_vnic_recycle_mbufs(port.id, 0, port.id, 0), 0);
}

TEST(RecycleTest, AnotherPoolUnderFastFreeIsRefusedWhole) {
  const Pool pool(1024);
  const Pool other(1024);
  {
    Port in("net_vnic0", "wire=static");
    Port out("net_vnic1", "wire=static");
    ASSERT_EQ(in.start(pool.get(), {.ring = 128}), 0);
    ASSERT_EQ(out.start(other.get(), {.ring = 128, .tx_offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE}), 0);
    rte_mbuf* mbufs[kBurst];
    ASSERT_EQ(rte_eth_rx_burst(in.id, 0, mbufs, kBurst), kBurst);
    for (unsigned i = 0; i < 64; ++i) ASSERT_EQ(out.send(other.make(std::vector<std::uint8_t>(60, 2))), 1);
    EXPECT_EQ(rte_net_vnic_recycle_mbufs(in.id, 0, out.id, 0), 0);
    EXPECT_EQ(out.counts()["recycle_refused_pool"], 32U);
    rte_pktmbuf_free_bulk(mbufs, kBurst);
  }
  EXPECT_EQ(pool.free(), pool.size());
  EXPECT_EQ(other.free(), other.size());
}

/// A pool whose buffers are no part of their mbufs: half a page each, of memory that EAL has.
class PinnedPool {
 public:
  PinnedPool() {
    start_eal();
    constexpr std::uint16_t kElement = 2048 + RTE_PKTMBUF_HEADROOM;
    constexpr unsigned kMbufs = 1023;
    zone_ = rte_memzone_reserve_aligned("pinned", std::size_t{kMbufs} * kElement, SOCKET_ID_ANY,
                                        RTE_MEMZONE_SIZE_HINT_ONLY, 4096);
    rte_pktmbuf_extmem buffers{};
    buffers.buf_ptr = zone_->addr;
    buffers.buf_iova = RTE_BAD_IOVA;
    buffers.buf_len = zone_->len;
    buffers.elt_size = kElement;
    pool_ = rte_pktmbuf_pool_create_extbuf("pinned", kMbufs, 0, 0, kElement, SOCKET_ID_ANY, &buffers, 1);
  }
  ~PinnedPool() {
    rte_mempool_free(pool_);
    rte_memzone_free(zone_);
  }
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;
  [[nodiscard]] rte_mempool* get() const { return pool_; }

 private:
  const rte_memzone* zone_;
  rte_mempool* pool_;
};

/// Numbered frames go round a loopback, each looked at when it comes. What the driver gives and takes stays in balance.
void go_round(rte_mempool* mempool, const std::string& refill, const PortSetup& setup, unsigned burst,
              unsigned frames) {
  {
    Port port("net_vnic0", "wire=loopback,refill=" + refill);
    ASSERT_EQ(port.start(mempool, setup), 0);
    std::uint32_t next = 0;
    std::uint32_t expected = 0;
    std::uint64_t recycled = 0;
    std::vector<rte_mbuf*> mbufs(burst);
    while (expected < frames) {
      recycled += rte_net_vnic_recycle_mbufs(port.id, 0, port.id, 0);
      for (unsigned i = 0; i < burst; ++i) {
        rte_mbuf* const mbuf = rte_pktmbuf_alloc(mempool);
        ASSERT_NE(mbuf, nullptr);
        char* const data = rte_pktmbuf_append(mbuf, 64);
        std::memset(data, static_cast<int>(next), 64);
        std::memcpy(data + 20, &next, sizeof next);
        if (port.send(mbuf) == 1) {
          ++next;
        } else {
          rte_pktmbuf_free(mbuf);
        }
      }
      const std::uint16_t count = rte_eth_rx_burst(port.id, 0, mbufs.data(), static_cast<std::uint16_t>(burst));
      for (std::uint16_t i = 0; i < count; ++i) {
        std::uint32_t number = 0;
        std::memcpy(&number, rte_pktmbuf_mtod(mbufs[i], const char*) + 20, sizeof number);
        ASSERT_EQ(number, expected++);
        ASSERT_EQ(rte_pktmbuf_mtod(mbufs[i], const std::uint8_t*)[63], static_cast<std::uint8_t>(number));
        ASSERT_EQ(rte_mbuf_refcnt_read(mbufs[i]), 1);
        rte_pktmbuf_free(mbufs[i]);
      }
    }
    std::map<std::string, std::uint64_t> counts = port.counts();
    EXPECT_EQ(counts["recycled"], recycled);
    // The test took `expected` mbufs from the receive ring. Sent mbufs left the transmit ring by recycling or a put.
    const std::uint64_t in_receive_ring = counts["mempool_gets"] + recycled - expected;
    EXPECT_LE(in_receive_ring, setup.ring);
    const std::uint64_t in_transmit_ring = next - recycled - counts["mempool_puts"];
    EXPECT_LE(in_transmit_ring, setup.ring);
  }
  ASSERT_EQ(rte_mempool_avail_count(mempool), mempool->size);
}

WARPLINE_PROPERTY(RecycleProperty, FramesStayAsTheyAreOverAllRingsThresholdsAndWraps, ()) {
  const Pool pool(2047);
  PortSetup setup{.ring = *rc::gen::inRange<std::uint16_t>(kMinRing, 300)};
  setup.rx_free_thresh = *rc::gen::inRange<std::uint16_t>(1, kMinRing / 2);
  setup.tx_rs_thresh = *rc::gen::inRange<std::uint16_t>(1, kMinRing / 2);
  setup.tx_free_thresh = *rc::gen::inRange<std::uint16_t>(setup.tx_rs_thresh, kMinRing / 2 + 1);
  if (*rc::gen::arbitrary<bool>()) setup.tx_offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  const auto refill = *rc::gen::elementOf(std::vector<std::string>{"computed", "mbuf", "ring"});
  const auto burst = *rc::gen::inRange(1U, 64U);
  go_round(pool.get(), refill, setup, burst, *rc::gen::inRange(200U, 2000U));
  RC_ASSERT(!testing::Test::HasFailure());
}

TEST(RecycleTest, PinnedExternalBuffersKeepTheirAddressesInTheRing) {
  const PinnedPool pool;
  for (const char* const refill : {"computed", "mbuf", "ring"}) {
    for (const std::uint64_t offloads : {std::uint64_t{0}, std::uint64_t{RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE}}) {
      go_round(pool.get(), refill, {.ring = 128, .tx_offloads = offloads}, 32, 3000);
    }
  }
}

struct FreeingCase {
  unsigned cache;
  rte_net_vnic_tx_free way;
};

class FreeingTest : public testing::TestWithParam<FreeingCase> {};

/// Sends plain mbufs, shared ones, clones, and mbufs of another pool: each is freed once.
TEST_P(FreeingTest, EveryMbufGoesBackToItsPoolOnce) {
  const Pool pool(2047, RTE_MBUF_DEFAULT_BUF_SIZE, GetParam().cache);
  const Pool other(2047, RTE_MBUF_DEFAULT_BUF_SIZE, GetParam().cache);
  const std::vector<std::uint8_t> frame(60, 2);
  std::vector<rte_mbuf*> shared;
  {
    Port port("net_vnic0", "wire=sink");
    ASSERT_EQ(port.start(pool.get(), {.ring = 128}), 0);
    ASSERT_EQ(rte_net_vnic_set_tx_free(port.id, 0, GetParam().way), 0);
    for (unsigned i = 0; i < 5000; ++i) {
      rte_mbuf* const mbuf = (i % 7 == 0 ? other : pool).make(frame);
      if (i % 11 == 0) {
        rte_mbuf* const clone = rte_pktmbuf_clone(mbuf, pool.get());
        ASSERT_NE(clone, nullptr);
        ASSERT_EQ(port.send(clone), 1);
      }
      if (i % 13 == 0 && shared.size() < 300) {
        rte_mbuf_refcnt_update(mbuf, 1);
        shared.push_back(mbuf);
      }
      ASSERT_EQ(port.send(mbuf), 1);
    }
    EXPECT_GT(port.counts()["mempool_puts"], 4000U);
  }
  for (rte_mbuf* const mbuf : shared) rte_pktmbuf_free(mbuf);
  EXPECT_EQ(pool.free(), pool.size());
  EXPECT_EQ(other.free(), other.size());
}

INSTANTIATE_TEST_SUITE_P(
    Ways, FreeingTest,
    testing::Values(FreeingCase{0, RTE_NET_VNIC_FREE_CHECKED}, FreeingCase{256, RTE_NET_VNIC_FREE_CHECKED},
                    FreeingCase{0, RTE_NET_VNIC_FREE_CACHE}, FreeingCase{8, RTE_NET_VNIC_FREE_CACHE},
                    FreeingCase{64, RTE_NET_VNIC_FREE_CACHE}, FreeingCase{512, RTE_NET_VNIC_FREE_CACHE}),
    [](const testing::TestParamInfo<FreeingCase>& tested) {
      const bool cache = tested.param.way == RTE_NET_VNIC_FREE_CACHE;
      return std::string(cache ? "Cache" : "Checked") + std::to_string(tested.param.cache);
    });

TEST(FreeingTest, IntoTheCacheFollowsTheCachesOwnRule) {
  const Pool pool(1023, RTE_MBUF_DEFAULT_BUF_SIZE, 64);
  Port port("net_vnic0", "wire=sink");
  ASSERT_EQ(port.start(pool.get(), {.ring = 64, .tx_free_thresh = 32, .tx_rs_thresh = 32}), 0);
  ASSERT_EQ(rte_net_vnic_set_tx_free(port.id, 0, RTE_NET_VNIC_FREE_CACHE), 0);
  rte_mempool_cache* const cache = rte_mempool_default_cache(pool.get(), rte_lcore_id());
  ASSERT_NE(cache, nullptr);
  for (unsigned i = 0; i < 1000; ++i) {
    ASSERT_EQ(port.send(pool.make(std::vector<std::uint8_t>(60, 2))), 1);
    ASSERT_LE(cache->len, cache->flushthresh);
  }
  // Without a cache in between the ring would hold the pool's rest.
  EXPECT_GT(cache->len, 0U);
}

TEST(FreeingTest, IsChosenForQueuesThatThereAre) {
  const Pool pool;
  Port port("net_vnic0", "wire=sink");
  EXPECT_EQ(rte_net_vnic_set_tx_free(port.id, 0, RTE_NET_VNIC_FREE_CACHE), -ENODEV);
  ASSERT_EQ(port.configure(pool.get()), 0);
  EXPECT_EQ(rte_net_vnic_set_tx_free(port.id, 0, RTE_NET_VNIC_FREE_CACHE), 0);
  EXPECT_EQ(rte_net_vnic_set_tx_free(port.id, 1, RTE_NET_VNIC_FREE_CACHE), -ENODEV);
  EXPECT_EQ(rte_net_vnic_set_tx_free(9999, 0, RTE_NET_VNIC_FREE_CACHE), -ENODEV);
  EXPECT_EQ(rte_net_vnic_set_tx_free(port.id, 0, static_cast<rte_net_vnic_tx_free>(7)), -EINVAL);
}

#ifndef NDEBUG
TEST(PostedSetDeathTest, AnMbufThatIsPostedTwiceEndsTheProcess) {
  const Pool pool(255);
  const Port port("net_vnic0", "wire=sink");
  rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool.get());
  posted_set.admit(mbuf);
  posted_set.insert(mbuf);
  EXPECT_DEATH(posted_set.insert(mbuf), "posted twice");
  posted_set.remove(mbuf);
  EXPECT_DEATH(posted_set.remove(mbuf), "in which it was not");
  rte_pktmbuf_free(mbuf);
}
#endif

}  // namespace
}  // namespace warpline::vnic
