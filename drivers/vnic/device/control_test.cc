// SPDX-License-Identifier: Apache-2.0
#include "vnic/device/control.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "vnic/api/driver_testing.h"

namespace warpline::vnic {
namespace {

const std::vector<std::uint8_t> kFrame(60, 0x02);

bool is_up(const Port& port) {
  rte_eth_link link{};
  EXPECT_EQ(rte_eth_link_get_nowait(port.id, &link), 0);
  return link.link_status == RTE_ETH_LINK_UP;
}

void drop(const std::vector<rte_mbuf*>& mbufs) {
  for (rte_mbuf* const mbuf : mbufs) rte_pktmbuf_free(mbuf);
}

TEST(ControlTest, RefusesArgumentsThatCannotBe) {
  start_eal();
  for (const char* args : {"wire=moon", "loss=2", "wire=net_vnic0", "wire=source,pcap=/nowhere.pcap"}) {
    EXPECT_NE(rte_vdev_init("net_vnic0", args), 0) << args;
  }
}

TEST(ControlTest, RefusesThresholdsThatWouldStandStill) {
  const Pool pool;
  Port port("net_vnic0");
  EXPECT_EQ(port.configure(pool.get(), {.ring = 64, .rx_free_thresh = 64}), -EINVAL);
  EXPECT_EQ(port.configure(pool.get(), {.ring = 64, .tx_free_thresh = 62}), -EINVAL);
  EXPECT_EQ(port.configure(pool.get(), {.ring = 64, .tx_free_thresh = 16, .tx_rs_thresh = 17}), -EINVAL);
  EXPECT_EQ(port.configure(pool.get(), {.ring = 64, .tx_free_thresh = 40, .tx_rs_thresh = 30}), -EINVAL);
  EXPECT_EQ(port.configure(pool.get(), {.ring = 63}), -EINVAL);
  EXPECT_EQ(port.configure(pool.get(), {.ring = 64, .tx_free_thresh = 32, .tx_rs_thresh = 32}), 0);
}

TEST(ControlTest, APoolTooSmallForTheRingIsAnError) {
  const Pool pool(50);
  Port port("net_vnic0");
  EXPECT_EQ(port.start(pool.get(), {.ring = 64}), -ENOMEM);
  EXPECT_EQ(pool.free(), pool.size());
}

void reconfigure(const char* args) {
  const Pool pool(8192);
  {
    Port port("net_vnic0", args);
    for (const std::uint16_t queues : {1, 4, 2, 32, 1}) {
      ASSERT_EQ(port.start(pool.get(), {.queues = queues, .ring = 64}), 0);
      for (std::uint16_t queue = 0; queue < queues; ++queue) {
        for (unsigned i = 0; i < 40; ++i) ASSERT_EQ(port.send(pool.make(kFrame), queue), 1);
      }
      for (std::uint16_t queue = 0; queue < queues; ++queue) drop(port.receive(queue, 1));
      ASSERT_EQ(rte_eth_dev_stop(port.id), 0);
      EXPECT_EQ(pool.free(), pool.size());
      // The same queues once more.
      ASSERT_EQ(rte_eth_dev_start(port.id), 0);
      ASSERT_EQ(port.send(pool.make(kFrame)), 1);
      ASSERT_EQ(rte_eth_dev_stop(port.id), 0);
    }
    std::map<std::string, std::uint64_t> counts = port.counts();
    EXPECT_EQ(counts["tx_packets"], counts["rx_packets"] + counts["rx_stopped"]);
  }
  EXPECT_EQ(pool.free(), pool.size());
}

TEST(ControlTest, StopsAndStartsWithOtherQueues) {
  reconfigure("");
  reconfigure("engine=thread");
}

TEST(ControlTest, AQueueStopsAndStartsWhileThePortRuns) {
  const Pool pool(2048);
  Port port("net_vnic0");
  ASSERT_EQ(port.start(pool.get(), {.queues = 2}), 0);
  ASSERT_EQ(rte_eth_dev_rx_queue_stop(port.id, 0), 0);
  ASSERT_EQ(port.send(pool.make(kFrame)), 1);
  EXPECT_TRUE(port.receive().empty());
  EXPECT_EQ(port.counts()["rx_stopped"], 1U);
  ASSERT_EQ(rte_eth_dev_rx_queue_start(port.id, 0), 0);
  ASSERT_EQ(rte_eth_dev_tx_queue_stop(port.id, 1), 0);
  rte_mbuf* const refused = pool.make(kFrame);
  EXPECT_EQ(port.send(refused, 1), 0);
  rte_pktmbuf_free(refused);
  ASSERT_EQ(rte_eth_dev_tx_queue_start(port.id, 1), 0);
  ASSERT_EQ(port.send(pool.make(kFrame), 1), 1);
  const std::vector<rte_mbuf*> received = port.receive();
  EXPECT_EQ(received.size(), 1U);
  drop(received);
}

/// Counts a port's link events. ethdev forgets no callback when a port goes, so it is taken back before.
class LinkEvents {
 public:
  explicit LinkEvents(std::uint16_t port) : port_(port) {
    rte_eth_dev_callback_register(port_, RTE_ETH_EVENT_INTR_LSC, on_event, &count);
  }
  ~LinkEvents() { rte_eth_dev_callback_unregister(port_, RTE_ETH_EVENT_INTR_LSC, on_event, &count); }
  LinkEvents(const LinkEvents&) = delete;
  LinkEvents& operator=(const LinkEvents&) = delete;

  int count = 0;

 private:
  static int on_event(std::uint16_t /*port*/, rte_eth_event_type /*event*/, void* counter, void* /*argument*/) {
    ++*static_cast<int*>(counter);
    return 0;
  }
  std::uint16_t port_;
};

TEST(ControlTest, LinkGoesDownAndUpAndTellsWhoAsked) {
  const Pool pool;
  Port port("net_vnic0");
  const LinkEvents events(port.id);
  ASSERT_EQ(port.start(pool.get(), {.link_interrupts = true}), 0);
  EXPECT_TRUE(is_up(port));
  EXPECT_EQ(events.count, 1);
  ASSERT_EQ(rte_eth_dev_set_link_down(port.id), 0);
  EXPECT_FALSE(is_up(port));
  EXPECT_EQ(events.count, 2);
  ASSERT_EQ(port.send(pool.make(kFrame)), 1);
  EXPECT_EQ(port.counts()["tx_link_down"], 1U);
  ASSERT_EQ(rte_eth_dev_set_link_up(port.id), 0);
  EXPECT_TRUE(is_up(port));
  EXPECT_EQ(events.count, 3);
}

TEST(ControlTest, APeerMayComeAndGo) {
  const Pool pool;
  Port near("net_vnic0", "wire=net_vnic1");
  const LinkEvents events(near.id);
  ASSERT_EQ(near.start(pool.get(), {.link_interrupts = true}), 0);
  EXPECT_FALSE(is_up(near));
  ASSERT_EQ(near.send(pool.make(kFrame)), 1);
  EXPECT_EQ(near.counts()["tx_no_peer"], 1U);
  {
    Port far("net_vnic1", "wire=net_vnic0");
    EXPECT_TRUE(is_up(near));
    EXPECT_EQ(events.count, 1);
    ASSERT_EQ(near.send(pool.make(kFrame)), 1);
    ASSERT_EQ(far.start(pool.get()), 0);
    const std::map<std::string, std::uint64_t> counts = far.counts();
    EXPECT_EQ(counts.at("rx_stopped") + counts.at("rx_link_down"), 1U);
    ASSERT_EQ(near.send(pool.make(kFrame)), 1);
    ASSERT_EQ(far.send(pool.make(kFrame)), 1);
    const std::vector<rte_mbuf*> there = far.receive();
    const std::vector<rte_mbuf*> here = near.receive();
    EXPECT_EQ(there.size(), 1U);
    EXPECT_EQ(here.size(), 1U);
    drop(there);
    drop(here);
  }
  EXPECT_FALSE(is_up(near));
  EXPECT_EQ(events.count, 2);
  ASSERT_EQ(near.send(pool.make(kFrame)), 1);
  EXPECT_EQ(near.counts()["tx_no_peer"], 2U);
}

TEST(ControlTest, OnlyAddressesOfThePortPassUnlessPromiscuous) {
  const Pool pool;
  Port port("net_vnic0");
  ASSERT_EQ(port.start(pool.get()), 0);
  ASSERT_EQ(rte_eth_promiscuous_disable(port.id), 0);
  const auto passes = [&](rte_ether_addr mac) {
    std::vector<std::uint8_t> frame(kFrame);
    std::copy_n(mac.addr_bytes, 6, frame.begin());
    port.send(pool.make(frame));
    const std::vector<rte_mbuf*> received = port.receive();
    drop(received);
    return received.size() == 1;
  };
  rte_ether_addr own{};
  ASSERT_EQ(rte_eth_macaddr_get(port.id, &own), 0);
  rte_ether_addr other{{0x02, 1, 2, 3, 4, 5}};
  rte_ether_addr group{{0x01, 0, 0x5e, 0, 0, 9}};
  EXPECT_TRUE(passes(own));
  EXPECT_TRUE(passes({{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}));
  EXPECT_FALSE(passes(other));
  EXPECT_FALSE(passes(group));
  ASSERT_EQ(rte_eth_dev_mac_addr_add(port.id, &other, 0), 0);
  EXPECT_TRUE(passes(other));
  ASSERT_EQ(rte_eth_dev_mac_addr_remove(port.id, &other), 0);
  EXPECT_FALSE(passes(other));
  ASSERT_EQ(rte_eth_dev_default_mac_addr_set(port.id, &other), 0);
  EXPECT_TRUE(passes(other));
  EXPECT_FALSE(passes(own));
  ASSERT_EQ(rte_eth_dev_set_mc_addr_list(port.id, &group, 1), 0);
  EXPECT_TRUE(passes(group));
  ASSERT_EQ(rte_eth_dev_set_mc_addr_list(port.id, nullptr, 0), 0);
  EXPECT_FALSE(passes(group));
  ASSERT_EQ(rte_eth_allmulticast_enable(port.id), 0);
  EXPECT_TRUE(passes(group));
}

TEST(ControlTest, TheMtuBoundsWhatIsReceived) {
  const Pool pool(2048, 9216);
  Port port("net_vnic0");
  ASSERT_EQ(port.start(pool.get()), 0);
  const auto passes = [&](std::size_t length) {
    port.send(pool.make(std::vector<std::uint8_t>(length, 2)));
    const std::vector<rte_mbuf*> received = port.receive();
    drop(received);
    return received.size() == 1;
  };
  EXPECT_TRUE(passes(1522));
  EXPECT_FALSE(passes(1523));
  ASSERT_EQ(rte_eth_dev_set_mtu(port.id, 9000), 0);
  EXPECT_TRUE(passes(9022));
  EXPECT_EQ(rte_eth_dev_set_mtu(port.id, 9001), -EINVAL);
  EXPECT_EQ(port.counts()["rx_giant"], 1U);
}

TEST(ControlTest, TheIndirectionTableMayBeReadAndWritten) {
  const Pool pool;
  Port port("net_vnic0");
  ASSERT_EQ(port.start(pool.get(), {.queues = 4, .rss_fields = RTE_ETH_RSS_IPV4}), 0);
  rte_eth_rss_reta_entry64 table[8]{};
  for (auto& group : table) group.mask = ~0ULL;
  ASSERT_EQ(rte_eth_dev_rss_reta_query(port.id, table, 512), 0);
  EXPECT_EQ(table[1].reta[3], 67 % 4);
  for (auto& group : table) std::fill_n(group.reta, 64, 3);
  ASSERT_EQ(rte_eth_dev_rss_reta_update(port.id, table, 512), 0);
  for (auto& group : table) std::fill_n(group.reta, 64, 0);
  ASSERT_EQ(rte_eth_dev_rss_reta_query(port.id, table, 512), 0);
  EXPECT_EQ(table[7].reta[63], 3);
  std::uint8_t key[40] = {1, 2, 3};
  rte_eth_rss_conf conf{};
  conf.rss_key = key;
  conf.rss_key_len = 40;
  conf.rss_hf = RTE_ETH_RSS_IPV4;
  ASSERT_EQ(rte_eth_dev_rss_hash_update(port.id, &conf), 0);
  std::uint8_t read[40] = {};
  conf.rss_key = read;
  ASSERT_EQ(rte_eth_dev_rss_hash_conf_get(port.id, &conf), 0);
  EXPECT_EQ(read[2], 3);
  EXPECT_EQ(conf.rss_hf, RTE_ETH_RSS_IPV4);
}

TEST(ControlTest, StatisticsBeginAnewWhenReset) {
  const Pool pool;
  Port port("net_vnic0");
  ASSERT_EQ(port.start(pool.get()), 0);
  for (unsigned i = 0; i < 3; ++i) ASSERT_EQ(port.send(pool.make(kFrame)), 1);
  drop(port.receive());
  rte_eth_stats stats{};
  ASSERT_EQ(rte_eth_stats_get(port.id, &stats), 0);
  EXPECT_EQ(stats.ipackets, 3U);
  EXPECT_EQ(stats.opackets, 3U);
  EXPECT_EQ(stats.obytes, 180U);
  EXPECT_EQ(port.counts()["rx_q0_packets"], 3U);
  ASSERT_EQ(rte_eth_stats_reset(port.id), 0);
  ASSERT_EQ(port.send(pool.make(kFrame)), 1);
  drop(port.receive());
  ASSERT_EQ(rte_eth_stats_get(port.id, &stats), 0);
  EXPECT_EQ(stats.ipackets, 1U);
  EXPECT_EQ(port.counts()["tx_q0_packets"], 1U);
}

}  // namespace
}  // namespace warpline::vnic
