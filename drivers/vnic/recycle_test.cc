// SPDX-License-Identifier: Apache-2.0
#include "recycle.h"

#include <gtest/gtest.h>

#include <vector>

#include "driver_testing.h"

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

}  // namespace
}  // namespace warpline::vnic
