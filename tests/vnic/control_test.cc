// SPDX-License-Identifier: Apache-2.0
// Addresses, statistics, and device arguments, good and bad.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "port.h"

namespace warpline::vnic {
namespace {

packet::FrameBytes to(const rte_ether_addr& mac) {
  packet::FrameBytes frame = numbered(1);
  std::copy(std::begin(mac.addr_bytes), std::end(mac.addr_bytes), frame.begin());
  return frame;
}

TEST(Addresses, FilterWhatIsForOthers) {
  const Pool pool;
  Port port("net_vnic0");
  PortSetup setup = simple(pool);
  setup.promiscuous = false;
  port.bring_up(setup);
  const auto passes = [&](const rte_ether_addr& mac) {
    port.send(pool, to(mac));
    return port.receive_all().size() == 1;
  };
  rte_ether_addr own{};
  ASSERT_EQ(rte_eth_macaddr_get(port.id(), &own), 0);
  rte_ether_addr other{{0x02, 9, 9, 9, 9, 9}};
  rte_ether_addr group{{0x01, 0, 0x5e, 1, 2, 3}};
  EXPECT_TRUE(passes(own));
  EXPECT_TRUE(passes({{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}));
  EXPECT_FALSE(passes(other));
  EXPECT_FALSE(passes(group));
  EXPECT_EQ(port.count(Count::rx_filtered), 2U);

  ASSERT_EQ(rte_eth_dev_mac_addr_add(port.id(), &other, 0), 0);
  EXPECT_TRUE(passes(other));
  ASSERT_EQ(rte_eth_dev_mac_addr_remove(port.id(), &other), 0);
  EXPECT_FALSE(passes(other));
  ASSERT_EQ(rte_eth_dev_default_mac_addr_set(port.id(), &other), 0);
  EXPECT_TRUE(passes(other));
  EXPECT_FALSE(passes(own));

  ASSERT_EQ(rte_eth_dev_set_mc_addr_list(port.id(), &group, 1), 0);
  EXPECT_TRUE(passes(group));
  ASSERT_EQ(rte_eth_dev_set_mc_addr_list(port.id(), nullptr, 0), 0);
  EXPECT_FALSE(passes(group));
  ASSERT_EQ(rte_eth_allmulticast_enable(port.id()), 0);
  EXPECT_TRUE(passes(group));
  ASSERT_EQ(rte_eth_allmulticast_disable(port.id()), 0);
  EXPECT_FALSE(passes(group));
  ASSERT_EQ(rte_eth_promiscuous_enable(port.id()), 0);
  EXPECT_TRUE(passes(group));
  EXPECT_TRUE(passes(own));
  ASSERT_EQ(rte_eth_promiscuous_disable(port.id()), 0);
  EXPECT_FALSE(passes(own));
}

TEST(Addresses, OfPortsDifferAndStay) {
  std::set<std::string> seen;
  rte_ether_addr first{};
  for (int i = 0; i < 8; ++i) {
    const Port port("net_vnic" + std::to_string(i));
    rte_ether_addr mac{};
    ASSERT_EQ(rte_eth_macaddr_get(port.id(), &mac), 0);
    EXPECT_EQ(mac.addr_bytes[0], 0x02) << "locally administered, of one station";
    EXPECT_TRUE(seen.emplace(reinterpret_cast<const char*>(mac.addr_bytes), sizeof mac.addr_bytes).second);
    if (i == 0) first = mac;
  }
  const Port again("net_vnic0");
  rte_ether_addr mac{};
  ASSERT_EQ(rte_eth_macaddr_get(again.id(), &mac), 0);
  EXPECT_TRUE(rte_is_same_ether_addr(&mac, &first));
}

TEST(Statistics, HaveANameForEveryCounter) {
  const Pool pool;
  Port port("net_vnic0");
  port.bring_up(simple(pool));
  std::set<std::string> names;
  std::vector<rte_eth_xstat_name> all(static_cast<std::size_t>(rte_eth_xstats_get_names(port.id(), nullptr, 0)));
  ASSERT_EQ(rte_eth_xstats_get_names(port.id(), all.data(), static_cast<unsigned>(all.size())),
            static_cast<int>(all.size()));
  for (const rte_eth_xstat_name& name : all) EXPECT_TRUE(names.emplace(name.name).second) << name.name << " twice";
  for (const char* const name : kCountNames) EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Statistics, CountAndAreReset) {
  const Pool pool;
  Port port("net_vnic0");
  PortSetup setup = simple(pool);
  setup.tx_queues = 2;
  port.bring_up(setup);
  for (int round = 0; round < 2; ++round) {
    port.send(pool, numbered(1, 100), 1);
    port.send(pool, numbered(2, 60), 0);
    EXPECT_EQ(port.receive_all().size(), 2U);
    const rte_eth_stats stats = port.stats();
    EXPECT_EQ(stats.ipackets, 2U);
    EXPECT_EQ(stats.opackets, 2U);
    EXPECT_EQ(stats.ibytes, 160U);
    EXPECT_EQ(stats.obytes, 160U);
    EXPECT_EQ(stats.q_opackets[1], 1U);
    EXPECT_EQ(stats.q_obytes[1], 100U);
    EXPECT_EQ(stats.q_ipackets[0], 2U);
    EXPECT_EQ(port.xstat("tx_q1_packets"), 1U);
    EXPECT_EQ(port.xstat("tx_packets"), 2U);
    if (round == 0) {
      ASSERT_EQ(rte_eth_stats_reset(port.id()), 0);
    } else {
      ASSERT_EQ(rte_eth_xstats_reset(port.id()), 0);
    }
    EXPECT_EQ(port.stats().ipackets, 0U);
    EXPECT_EQ(port.xstat("tx_packets"), 0U);
  }
}

TEST(Statistics, CountWhatFindsNoDescriptor) {
  const Pool pool(8191);
  Port port("net_vnic0", "buffer=32Ki");
  port.bring_up(simple(pool));
  for (std::uint32_t i = 0; i < 1000; ++i) port.send(pool, numbered(i));
  const std::size_t received = port.receive_all().size();
  EXPECT_LT(received, 1000U);
  EXPECT_GE(received, 200U);
  EXPECT_EQ(port.stats().imissed, 1000 - received);
  EXPECT_EQ(port.count(Count::rx_no_descriptor), 1000 - received);
}

TEST(Devargs, ThatMakeNoSenseAreRefused) {
  const QuietLog quiet;
  for (const char* const args : {"wire=",
                                 "wire=moon",
                                 "wire",
                                 "=",
                                 "wire=net_vnic0",
                                 "engine=fast",
                                 "engine=",
                                 "rate=0",
                                 "rate=-1",
                                 "rate=fast",
                                 "wire=source,rate=0",
                                 "loss=2",
                                 "loss=-0.1",
                                 "loss=nan",
                                 "loss=",
                                 "loss=0.1x",
                                 "corrupt=1e400",
                                 "delay=2d",
                                 "delay=-1us",
                                 "size=10",
                                 "size=100000",
                                 "wire=source,size=59",
                                 "wire=source,flows=0",
                                 "wire=source,flows=999999999",
                                 "queues=0",
                                 "queues=33",
                                 "queues=many",
                                 "seed=",
                                 "seed=-1",
                                 "buffer=1",
                                 "buffer=100Gi",
                                 "reorder_depth=0",
                                 "reorder_depth=65",
                                 "queue_bytes=0",
                                 "flap_lost=0",
                                 "fast_free=2",
                                 "pcap=/nowhere",
                                 "cpu=-1",
                                 "cpu=99999999",
                                 "wire=source,pcap=/nowhere/at/all.pcap",
                                 "wire=source,pcap=/",
                                 "wire=source,pcap=/dev/null",
                                 "wire=source,pcap=",
                                 "unknown=1",
                                 "los=0.1",
                                 "loss=0.1,,burst=3",
                                 "rate=10Mpps"}) {
    const Port port("net_vnic0", args);
    EXPECT_LT(port.probed(), 0) << args;
    std::uint16_t id = 0;
    EXPECT_NE(rte_eth_dev_get_port_by_name("net_vnic0", &id), 0) << args;
  }
}

TEST(Devargs, ThatMakeSenseAreTaken) {
  for (const char* const args :
       {"", "wire=loopback", "wire=sink", "wire=static,size=1514", "wire=net_vnic7", "engine=thread", "seed=0",
        "seed=18446744073709551615", "queues=32", "wire=source,rate=14.88Mpps,size=60,flows=131072",
        "wire=source,rate=10gbit", "rate=10gbit,queue_bytes=64Ki,ecn_bytes=1Ki", "delay=10us,jitter=1ms", "rate=max",
        "loss=0.5,loss=0", "fast_free=0", "buffer=32Ki"}) {
    const Port port("net_vnic0", args);
    EXPECT_EQ(port.probed(), 0) << args;
  }
}

TEST(Devargs, OfANameThatIsTakenAreRefused) {
  const QuietLog quiet;
  const Port port("net_vnic0");
  EXPECT_NE(Port("net_vnic0").probed(), 0);
}

}  // namespace
}  // namespace warpline::vnic
