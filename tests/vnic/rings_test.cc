// SPDX-License-Identifier: Apache-2.0
// Descriptor rings of every size, thresholds, and what applications may ask about queues.

#include <gtest/gtest.h>

#include "port.h"

namespace warpline::vnic {
namespace {

/// Sends and receives `frames` numbered frames in bursts on a loopback; every one comes back in order.
void expect_loop(const Port& port, const Pool& pool, std::uint32_t frames, std::uint16_t burst) {
  std::uint32_t received = 0;
  for (std::uint32_t sent = 0; sent < frames;) {
    std::vector<rte_mbuf*> mbufs;
    while (mbufs.size() < burst && sent < frames) mbufs.push_back(pool.chain(numbered(sent++)));
    ASSERT_EQ(port.send(mbufs.data(), static_cast<std::uint16_t>(mbufs.size())), mbufs.size());
    for (const packet::FrameBytes& frame : port.receive_all()) ASSERT_EQ(frame, numbered(received++));
  }
  EXPECT_EQ(received, frames);
}

class RingSizes : public testing::TestWithParam<std::uint16_t> {};

TEST_P(RingSizes, CarryEveryFrameOverTheirEnd) {
  const Pool pool(32767);
  Port port("net_vnic0", "buffer=8Mi");
  PortSetup setup;
  setup.pool = pool.get();
  setup.rx_ring = setup.tx_ring = GetParam();
  for (const std::uint16_t burst : {std::uint16_t{1}, std::uint16_t{33}, GetParam()}) {
    port.bring_up(setup);
    expect_loop(port, pool, burst == 1 ? 200 : 3U * GetParam() + 7, burst);
    expect_accounted(pool, {&port});
    ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
    EXPECT_EQ(pool.in_use(), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, RingSizes, testing::Values(64, 65, 97, 100, 512, 1000, 4096, 8191, 8192));

TEST(Rings, OfOtherSizesAreRefused) {
  const QuietLog quiet;
  const Pool pool;
  Port port("net_vnic0");
  for (const std::uint16_t size : {1, 63, 8193, 65535}) {
    PortSetup setup;
    setup.pool = pool.get();
    setup.rx_ring = size;
    EXPECT_EQ(port.configure(setup), -EINVAL) << size;
    setup.rx_ring = 256;
    setup.tx_ring = size;
    EXPECT_EQ(port.configure(setup), -EINVAL) << size;
  }
}

TEST(Rings, ThresholdsThatWouldStandStillAreRefused) {
  const QuietLog quiet;
  const Pool pool(16383);
  Port port("net_vnic0");
  struct Case {
    std::uint16_t ring, rs, free;
    bool good;
  };
  for (const Case& c : {Case{64, 0, 0, true}, Case{64, 32, 32, true}, Case{64, 1, 1, true}, Case{64, 64, 64, false},
                        Case{64, 33, 32, false}, Case{128, 64, 64, true}, Case{256, 32, 240, false},
                        Case{8192, 4096, 4096, true}, Case{100, 7, 50, true}, Case{64, 65535, 65535, false}}) {
    PortSetup setup;
    setup.pool = pool.get();
    setup.tx_ring = c.ring;
    setup.tx.tx_rs_thresh = c.rs;
    setup.tx.tx_free_thresh = c.free;
    EXPECT_EQ(port.configure(setup), c.good ? 0 : -EINVAL) << c.ring << ' ' << c.rs << ' ' << c.free;
    if (!c.good) continue;
    ASSERT_EQ(rte_eth_dev_start(port.id()), 0);
    expect_loop(port, pool, 5U * c.ring, 24);
    expect_accounted(pool, {&port});
    ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
  }
  PortSetup setup;
  setup.pool = pool.get();
  setup.rx.rx_free_thresh = 256;
  EXPECT_EQ(port.configure(setup), -EINVAL);
}

TEST(Rings, FreeSentMbufsLateAndInBatches) {
  const Pool pool;
  Port port("net_vnic0", "wire=sink");
  PortSetup setup;
  setup.pool = pool.get();
  setup.tx_ring = 128;
  setup.tx.tx_rs_thresh = 16;
  setup.tx.tx_free_thresh = 32;
  port.bring_up(setup);
  const unsigned posted = pool.in_use();
  EXPECT_EQ(posted, 256U);
  for (std::uint32_t i = 0; i < 96; ++i) port.send(pool, numbered(i));
  EXPECT_EQ(pool.in_use(), posted + 96) << "nothing is freed while there is room";
  EXPECT_EQ(rte_eth_tx_descriptor_status(port.id(), 0, 0), RTE_ETH_TX_DESC_DONE);
  port.send(pool, numbered(96));
  port.send(pool, numbered(97));
  EXPECT_EQ(pool.in_use(), posted + 98 - 16);
  EXPECT_EQ(rte_eth_tx_done_cleanup(port.id(), 0, 1), 16);
  EXPECT_EQ(rte_eth_tx_done_cleanup(port.id(), 0, 0), 64);
  EXPECT_EQ(pool.in_use(), posted + 2) << "those of no full batch stay";
  expect_accounted(pool, {&port});
}

TEST(Rings, PostBuffersInBatches) {
  const Pool pool;
  Port port("net_vnic0");
  PortSetup setup;
  setup.pool = pool.get();
  setup.rx_ring = 128;
  setup.rx.rx_free_thresh = 20;
  port.bring_up(setup);
  EXPECT_EQ(port.held(pool), 128U);
  for (std::uint32_t i = 0; i < 19; ++i) port.send(pool, numbered(i));
  EXPECT_EQ(rte_eth_rx_queue_count(port.id(), 0), 19);
  EXPECT_EQ(rte_eth_rx_descriptor_status(port.id(), 0, 18), RTE_ETH_RX_DESC_DONE);
  EXPECT_EQ(rte_eth_rx_descriptor_status(port.id(), 0, 19), RTE_ETH_RX_DESC_AVAIL);
  EXPECT_EQ(rte_eth_rx_descriptor_status(port.id(), 0, 128), -EINVAL);
  EXPECT_EQ(port.receive_all().size(), 19U);
  const RxQueue& queue = *port.device().rx[0];
  EXPECT_EQ(queue.refilled - queue.harvested, 128U - 19);
  port.send(pool, numbered(19));
  EXPECT_EQ(port.receive_all().size(), 1U);
  EXPECT_EQ(port.receive_all().size(), 0U);
  EXPECT_EQ(queue.refilled - queue.harvested, 128U);
}

TEST(Rings, WithoutMbufsCountThemAndRecover) {
  const Pool pool(383, 2048, 0);
  Port port("net_vnic0");
  PortSetup setup;
  setup.pool = pool.get();
  setup.rx_ring = 128;
  port.bring_up(setup);
  std::vector<rte_mbuf*> hoard;
  while (rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool.get())) hoard.push_back(mbuf);
  ASSERT_EQ(hoard.size(), 255U);
  const std::uint64_t before = port.count(Count::rx_no_mbuf);
  std::vector<rte_mbuf*> received;
  for (std::uint32_t i = 0; i < 160; ++i) {
    rte_mbuf* const mbuf = hoard.back();
    hoard.pop_back();
    rte_pktmbuf_append(mbuf, 64);
    rte_mbuf* one = mbuf;
    ASSERT_EQ(port.send(&one, 1), 1);
    for (rte_mbuf* const arrived : port.receive()) received.push_back(arrived);
  }
  EXPECT_EQ(received.size(), 128U) << "as many as there were buffers";
  EXPECT_GT(port.count(Count::rx_no_mbuf), before);
  EXPECT_EQ(port.stats().rx_nombuf, port.count(Count::rx_no_mbuf));
  rte_pktmbuf_free_bulk(hoard.data(), static_cast<unsigned>(hoard.size()));
  rte_pktmbuf_free_bulk(received.data(), static_cast<unsigned>(received.size()));
  EXPECT_EQ(port.receive_all().size(), 32U) << "the packet buffer kept the rest";
  expect_accounted(pool, {&port});
}

TEST(Rings, AreNotStartedFromAPoolThatIsTooSmall) {
  const QuietLog quiet;
  const Pool pool(127, 2048, 0);
  Port port("net_vnic0");
  PortSetup setup;
  setup.pool = pool.get();
  ASSERT_EQ(port.configure(setup), 0);
  EXPECT_EQ(rte_eth_dev_start(port.id()), -ENOMEM);
  EXPECT_EQ(pool.in_use(), 0U);
  setup.rx_ring = 64;
  port.bring_up(setup);
}

TEST(Queues, TellHowTheyWereSetUp) {
  const Pool pool;
  Port port("net_vnic0");
  PortSetup setup;
  setup.pool = pool.get();
  setup.rx.rx_free_thresh = 48;
  setup.tx.tx_rs_thresh = 24;
  setup.tx.tx_free_thresh = 40;
  port.bring_up(setup);
  rte_eth_rxq_info rx{};
  ASSERT_EQ(rte_eth_rx_queue_info_get(port.id(), 0, &rx), 0);
  EXPECT_EQ(rx.mp, pool.get());
  EXPECT_EQ(rx.nb_desc, 256);
  EXPECT_EQ(rx.conf.rx_free_thresh, 48);
  EXPECT_EQ(rx.rx_buf_size, 2048);
  rte_eth_txq_info tx{};
  ASSERT_EQ(rte_eth_tx_queue_info_get(port.id(), 0, &tx), 0);
  EXPECT_EQ(tx.nb_desc, 256);
  EXPECT_EQ(tx.conf.tx_rs_thresh, 24);
  EXPECT_EQ(tx.conf.tx_free_thresh, 40);
  rte_eth_burst_mode mode{};
  ASSERT_EQ(rte_eth_rx_burst_mode_get(port.id(), 0, &mode), 0);
  EXPECT_STREQ(mode.info, "plain");
}

TEST(Queues, StopAndStartWhileThePortRuns) {
  const Pool pool;
  Port port("net_vnic0");
  PortSetup setup;
  setup.pool = pool.get();
  setup.rx_queues = setup.tx_queues = 2;
  port.bring_up(setup);
  expect_loop(port, pool, 300, 32);
  ASSERT_EQ(rte_eth_dev_rx_queue_stop(port.id(), 0), 0);
  EXPECT_EQ(port.held(pool), pool.in_use());
  for (std::uint32_t i = 0; i < 5; ++i) port.send(pool, numbered(i));
  EXPECT_EQ(port.receive_all().size(), 0U);
  EXPECT_EQ(port.count(Count::rx_stopped), 5U);
  ASSERT_EQ(rte_eth_dev_rx_queue_start(port.id(), 0), 0);
  ASSERT_EQ(rte_eth_dev_tx_queue_stop(port.id(), 0), 0);
  rte_mbuf* mbuf = pool.chain(numbered(1));
  EXPECT_EQ(rte_eth_tx_burst(port.id(), 0, &mbuf, 1), 0);
  EXPECT_EQ(rte_eth_tx_burst(port.id(), 1, &mbuf, 1), 1);
  ASSERT_EQ(rte_eth_dev_tx_queue_start(port.id(), 0), 0);
  EXPECT_EQ(port.receive_all().size(), 1U);
  expect_loop(port, pool, 300, 32);
  expect_accounted(pool, {&port});
}

TEST(Queues, AreSetUpAnewWhileThePortRuns) {
  const QuietLog quiet;
  const Pool pool;
  const Pool other;
  Port port("net_vnic0");
  PortSetup setup;
  setup.pool = pool.get();
  setup.rx_queues = setup.tx_queues = 2;
  port.bring_up(setup);
  rte_mbuf* mbufs[4];
  for (int round = 0; round < 3; ++round) {
    expect_loop(port, pool, 300, 32);
    ASSERT_EQ(rte_eth_dev_rx_queue_stop(port.id(), 0), 0);
    ASSERT_EQ(rte_eth_dev_tx_queue_stop(port.id(), 0), 0);
    // More than the burst functions do that the port was started with.
    rte_eth_rxconf rx{};
    rx.offloads = RTE_ETH_RX_OFFLOAD_SCATTER;
    EXPECT_EQ(rte_eth_rx_queue_setup(port.id(), 0, 128, 0, &rx, pool.get()), -ENOTSUP);
    rx.offloads = RTE_ETH_RX_OFFLOAD_TIMESTAMP;
    EXPECT_EQ(rte_eth_rx_queue_setup(port.id(), 0, 128, 0, &rx, pool.get()), -ENOTSUP);
    rte_eth_txconf tx{};
    tx.offloads = RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
    EXPECT_EQ(rte_eth_tx_queue_setup(port.id(), 0, 128, 0, &tx), -ENOTSUP);
    // Now there is no queue at all.
    EXPECT_EQ(rte_eth_rx_burst(port.id(), 0, mbufs, 4), 0);
    rte_mbuf* mbuf = pool.chain(numbered(0));
    EXPECT_EQ(rte_eth_tx_burst(port.id(), 0, &mbuf, 1), 0);
    EXPECT_EQ(rte_eth_tx_prepare(port.id(), 0, &mbuf, 1), 0);
    rte_pktmbuf_free(mbuf);
    EXPECT_NE(rte_eth_dev_rx_queue_start(port.id(), 0), 0);
    EXPECT_EQ(rte_eth_dev_set_mtu(port.id(), 1400), 0);
    expect_accounted(pool, {&port});

    ASSERT_EQ(rte_eth_rx_queue_setup(port.id(), 0, static_cast<std::uint16_t>(64 << round), 0, nullptr, other.get()),
              0);
    ASSERT_EQ(rte_eth_tx_queue_setup(port.id(), 0, static_cast<std::uint16_t>(512 >> round), 0, nullptr), 0);
    ASSERT_EQ(rte_eth_dev_rx_queue_start(port.id(), 0), 0);
    ASSERT_EQ(rte_eth_dev_tx_queue_start(port.id(), 0), 0);
    expect_accounted(other, {&port});
  }
  expect_loop(port, pool, 300, 32);
}

TEST(Ports, DoNotStartBeforeAllTheirQueuesAreSetUp) {
  const QuietLog quiet;
  const Pool pool;
  const Port port("net_vnic0");
  const rte_eth_conf conf{};
  ASSERT_EQ(rte_eth_dev_configure(port.id(), 2, 2, &conf), 0);
  EXPECT_EQ(rte_eth_dev_start(port.id()), -EINVAL);
  ASSERT_EQ(rte_eth_rx_queue_setup(port.id(), 0, 64, 0, nullptr, pool.get()), 0);
  ASSERT_EQ(rte_eth_tx_queue_setup(port.id(), 0, 64, 0, nullptr), 0);
  ASSERT_EQ(rte_eth_tx_queue_setup(port.id(), 1, 64, 0, nullptr), 0);
  EXPECT_EQ(rte_eth_dev_start(port.id()), -EINVAL);
  ASSERT_EQ(rte_eth_rx_queue_setup(port.id(), 1, 64, 0, nullptr, pool.get()), 0);
  EXPECT_EQ(rte_eth_dev_start(port.id()), 0);
}

TEST(Queues, ThatWaitForTheirStartHoldNothing) {
  const Pool pool;
  Port port("net_vnic0");
  PortSetup setup;
  setup.pool = pool.get();
  setup.rx.rx_deferred_start = 1;
  setup.tx.tx_deferred_start = 1;
  port.bring_up(setup);
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_EQ(port.receive().size(), 0U);
  rte_mbuf* mbuf = pool.chain(numbered(0));
  EXPECT_EQ(rte_eth_tx_burst(port.id(), 0, &mbuf, 1), 0);
  ASSERT_EQ(rte_eth_dev_tx_queue_start(port.id(), 0), 0);
  EXPECT_EQ(rte_eth_tx_burst(port.id(), 0, &mbuf, 1), 1);
  EXPECT_EQ(port.count(Count::rx_stopped), 1U);
  ASSERT_EQ(rte_eth_dev_rx_queue_start(port.id(), 0), 0);
  expect_loop(port, pool, 300, 32);
}

TEST(Ports, AreConfiguredAnewWithOtherQueues) {
  const Pool pool(32767);
  Port port("net_vnic0");
  std::uint64_t total = 0;
  for (const std::uint16_t queues : {1, 4, 32, 2, 1}) {
    PortSetup setup;
    setup.pool = pool.get();
    setup.rx_queues = setup.tx_queues = queues;
    setup.rx_ring = 128;
    port.bring_up(setup);
    for (std::uint16_t queue = 0; queue < queues; ++queue) port.send(pool, numbered(queue), queue);
    EXPECT_EQ(port.receive_all().size(), queues);
    total += queues;
    EXPECT_EQ(port.stats().opackets, total) << "what queues have counted stays when they go";
    expect_accounted(pool, {&port});
    ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
    EXPECT_EQ(pool.in_use(), 0U);
  }
}

TEST(Ports, OfferAsManyQueuesAsTheyAreTold) {
  const QuietLog quiet;
  const Pool pool;
  Port port("net_vnic0", "queues=3");
  PortSetup setup;
  setup.pool = pool.get();
  setup.rx_queues = 4;
  EXPECT_EQ(port.configure(setup), -EINVAL);
  setup.rx_queues = 3;
  EXPECT_EQ(port.configure(setup), 0);
}

TEST(Ports, StartWithQueuesOfOneSideOnly) {
  const Pool pool;
  Port sender("net_vnic0", "wire=net_vnic1");
  Port receiver("net_vnic1", "wire=net_vnic0");
  PortSetup setup;
  setup.pool = pool.get();
  setup.rx_queues = 0;
  sender.bring_up(setup);
  setup.rx_queues = 1;
  setup.tx_queues = 0;
  receiver.bring_up(setup);
  sender.send(pool, numbered(1));
  EXPECT_EQ(receiver.receive_all(), Frames{numbered(1)});
}

}  // namespace
}  // namespace warpline::vnic
