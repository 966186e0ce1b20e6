// SPDX-License-Identifier: Apache-2.0
// Addresses, link, statistics, the peer that comes and goes, and device arguments, good and bad.

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "port.h"
#include "set_faults.h"

namespace warpline::vnic {
namespace {

PortSetup simple(const Pool& pool) {
  PortSetup setup;
  setup.pool = pool.get();
  return setup;
}

FrameBytes to(const rte_ether_addr& mac) {
  FrameBytes frame = numbered(1);
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

bool is_up(const Port& port) {
  rte_eth_link link{};
  EXPECT_EQ(rte_eth_link_get_nowait(port.id(), &link), 0);
  return link.link_status == RTE_ETH_LINK_UP;
}

/// The link's states as its interrupt tells them: from the control thread, or from EAL's own.
class LinkEvents {
 public:
  explicit LinkEvents(const Port& port) : id_(port.id()) {
    EXPECT_EQ(rte_eth_dev_callback_register(id_, RTE_ETH_EVENT_INTR_LSC, told, this), 0);
  }
  ~LinkEvents() { rte_eth_dev_callback_unregister(id_, RTE_ETH_EVENT_INTR_LSC, told, this); }
  LinkEvents(const LinkEvents&) = delete;
  LinkEvents& operator=(const LinkEvents&) = delete;

  /// Returns when so many have come, at the latest when a test cannot be waited for any more.
  [[nodiscard]] std::vector<bool> first(std::size_t count) {
    std::unique_lock lock(mutex_);
    more_.wait_for(lock, std::chrono::minutes(1), [&] { return states_.size() >= count; });
    return states_;
  }

 private:
  static int told(std::uint16_t port, rte_eth_event_type /*event*/, void* opaque, void* /*argument*/) {
    rte_eth_link link{};
    rte_eth_link_get_nowait(port, &link);
    LinkEvents& self = *static_cast<LinkEvents*>(opaque);
    const std::scoped_lock lock(self.mutex_);
    self.states_.push_back(link.link_status == RTE_ETH_LINK_UP);
    self.more_.notify_all();
    return 0;
  }

  std::uint16_t id_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<bool> states_;
};

TEST(Link, GoesDownAndUpAndTells) {
  const Pool pool;
  Port port("net_vnic0");
  PortSetup setup = simple(pool);
  setup.conf.intr_conf.lsc = 1;
  EXPECT_FALSE(is_up(port));
  ASSERT_EQ(port.configure(setup), 0);
  LinkEvents events(port);
  ASSERT_EQ(rte_eth_dev_start(port.id()), 0);
  EXPECT_TRUE(is_up(port));
  ASSERT_EQ(rte_eth_dev_set_link_down(port.id()), 0);
  EXPECT_FALSE(is_up(port));
  port.send(pool, numbered(1));
  EXPECT_EQ(port.receive_all().size(), 0U);
  EXPECT_EQ(port.count(Count::tx_link_down), 1U);
  EXPECT_EQ(port.stats().oerrors, 1U);
  EXPECT_EQ(port.stats().opackets, 0U);
  ASSERT_EQ(rte_eth_dev_set_link_up(port.id()), 0);
  EXPECT_TRUE(is_up(port));
  port.send(pool, numbered(1));
  EXPECT_EQ(port.receive_all().size(), 1U);
  ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
  EXPECT_FALSE(is_up(port));
  EXPECT_EQ(events.first(4), (std::vector{true, false, true, false}));
}

/// Frames one by one, each in a burst of its own; what comes back is dropped.
void send_frames(const Port& port, const Pool& pool, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) port.send(pool, numbered(i));
  for (rte_mbuf* const mbuf : port.receive(0, 64)) rte_pktmbuf_free(mbuf);
}

class LinkFlap : public testing::TestWithParam<const char*> {};

TEST_P(LinkFlap, InterruptsAsItComesAndGoes) {
  const Pool pool;
  const std::string engine = GetParam();
  for (const bool at_run_time : {false, true}) {
    Port port("net_vnic0", engine + (at_run_time ? "" : ",flap_frames=5,flap_lost=3"));
    PortSetup setup = simple(pool);
    setup.conf.intr_conf.lsc = 1;
    ASSERT_EQ(port.configure(setup), 0);
    LinkEvents events(port);
    ASSERT_EQ(rte_eth_dev_start(port.id()), 0);
    std::vector<bool> expected{true};
    if (at_run_time) {
      send_frames(port, pool, 7);
      while (port.count(Count::tx_packets) < 7) std::this_thread::yield();
      ASSERT_EQ(rte_net_vnic_set_faults(port.id(), "flap_frames=5,flap_lost=3"), 0);
    }
    for (int flap = 0; flap < 3; ++flap) {
      send_frames(port, pool, 5);
      expected.push_back(false);
      ASSERT_EQ(events.first(expected.size()), expected);
      EXPECT_FALSE(is_up(port));
      send_frames(port, pool, 3);
      expected.push_back(true);
      ASSERT_EQ(events.first(expected.size()), expected);
      EXPECT_TRUE(is_up(port));
    }
    EXPECT_EQ(port.count(Count::fault_flap), 9U);
    // While it is down, the fault ends; and it changes.
    for (const char* const next : {"flap_frames=4", ""}) {
      send_frames(port, pool, *next == '\0' ? 4 : 5);
      expected.push_back(false);
      ASSERT_EQ(events.first(expected.size()), expected);
      ASSERT_EQ(rte_net_vnic_set_faults(port.id(), next), 0);
      expected.push_back(true);
      ASSERT_EQ(events.first(expected.size()), expected);
    }
    ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
    expected.push_back(false);
    EXPECT_EQ(events.first(expected.size()), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, LinkFlap, testing::Values("engine=inline", "engine=thread"),
                         [](const auto& param) { return std::string(param.param).substr(7); });

TEST(Link, FlapIsSeenWithoutInterruptsToo) {
  const Pool pool;
  Port port("net_vnic0", "flap_frames=5,flap_lost=3");
  port.bring_up(simple(pool));
  send_frames(port, pool, 5);
  EXPECT_FALSE(is_up(port));
  send_frames(port, pool, 3);
  EXPECT_TRUE(is_up(port));
}

TEST(Link, InterruptsAreAnnounced) {
  const Port port("net_vnic0");
  rte_eth_dev_info info{};
  ASSERT_EQ(rte_eth_dev_info_get(port.id(), &info), 0);
  ASSERT_NE(info.dev_flags, nullptr);
  EXPECT_NE(*info.dev_flags & RTE_ETH_DEV_INTR_LSC, 0U);
}

TEST(Link, OfAPeerThatIsDownLosesFramesThere) {
  const Pool pool;
  Port a("net_vnic0", "wire=net_vnic1");
  Port b("net_vnic1", "wire=net_vnic0");
  a.bring_up(simple(pool));
  b.bring_up(simple(pool));
  ASSERT_EQ(rte_eth_dev_set_link_down(b.id()), 0);
  a.send(pool, numbered(1));
  EXPECT_EQ(b.receive_all().size(), 0U);
  EXPECT_EQ(a.count(Count::tx_packets), 1U);
  EXPECT_EQ(b.count(Count::rx_link_down), 1U);
}

TEST(Peer, ThatIsAbsentOrGoesAwayIsCounted) {
  const Pool pool;
  Port a("net_vnic0", "wire=net_vnic1");
  a.bring_up(simple(pool));
  EXPECT_FALSE(is_up(a)) << "nobody at the other end";
  a.send(pool, numbered(1));
  EXPECT_EQ(a.count(Count::tx_no_peer), 1U);
  for (int life = 0; life < 3; ++life) {
    Port b("net_vnic1", "wire=net_vnic0");
    a.send(pool, numbered(1));
    EXPECT_EQ(b.count(Count::rx_stopped) + b.count(Count::rx_link_down), 1U) << "there, but not started";
    b.bring_up(simple(pool));
    EXPECT_TRUE(is_up(a));
    for (std::uint32_t i = 0; i < 100; ++i) {
      a.send(pool, numbered(i));
      b.send(pool, numbered(i));
    }
    EXPECT_EQ(b.receive_all().size(), 100U);
    a.send(pool, numbered(1));
    expect_accounted(pool, {&a, &b});
    b.close();
    EXPECT_FALSE(is_up(a));
    const std::uint64_t before = a.count(Count::tx_no_peer);
    a.send(pool, numbered(1));
    EXPECT_EQ(a.count(Count::tx_no_peer), before + 1);
    EXPECT_EQ(a.receive_all().size(), 100U) << "what had arrived stays";
    expect_accounted(pool, {&a});
  }
}

TEST(Peer, MayBeTheSameForSeveralPorts) {
  const Pool pool;
  Port hub("net_vnic9", "wire=sink");
  Port a("net_vnic0", "wire=net_vnic9");
  Port b("net_vnic1", "wire=net_vnic9");
  hub.bring_up(simple(pool));
  a.bring_up(simple(pool));
  b.bring_up(simple(pool));
  a.send(pool, numbered(1));
  b.send(pool, numbered(2));
  EXPECT_EQ(hub.receive_all(), (Frames{numbered(1), numbered(2)}));
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

TEST(FaultsAtRunTime, AreChangedAndEnded) {
  const QuietLog quiet;
  const Pool pool;
  Port port("net_vnic0", "loss=1");
  port.bring_up(simple(pool));
  const auto arrive = [&] {
    for (std::uint32_t i = 0; i < 10; ++i) port.send(pool, numbered(i));
    return port.receive_all().size();
  };
  EXPECT_EQ(arrive(), 0U);
  EXPECT_EQ(rte_net_vnic_set_faults(port.id(), "loss=0,duplicate=1"), 0);
  EXPECT_EQ(arrive(), 20U);
  EXPECT_EQ(rte_net_vnic_set_faults(port.id(), "loss=2"), -EINVAL);
  EXPECT_EQ(rte_net_vnic_set_faults(port.id(), "loss"), -EINVAL);
  EXPECT_EQ(rte_net_vnic_set_faults(port.id(), "wire=sink"), -EINVAL);
  EXPECT_EQ(rte_net_vnic_set_faults(port.id(), "rate=0"), -EINVAL);
  EXPECT_EQ(arrive(), 20U) << "what is refused changes nothing";
  EXPECT_EQ(rte_net_vnic_set_faults(port.id(), ""), 0);
  EXPECT_EQ(arrive(), 10U);
  EXPECT_EQ(rte_net_vnic_set_faults(31, ""), -ENODEV);
}

/// A fault as set at run time, and the counter that tells of it.
struct RunTimeFault {
  const char* text;
  Count counter;
};

class EveryFault : public testing::TestWithParam<RunTimeFault> {};

TEST_P(EveryFault, BeginsAndEndsAtRunTime) {
  const Pool pool;
  Port port("net_vnic0");
  port.bring_up(simple(pool));
  FrameBytes frame = numbered(1);
  frame[15] = 2;  // ECT(0), RFC 3168
  frame = with_checksums(frame);
  const auto struck = [&] {
    const std::uint64_t before = port.count(GetParam().counter);
    for (int i = 0; i < 100; ++i) {
      port.send(pool, frame);
      for (rte_mbuf* const mbuf : port.receive()) rte_pktmbuf_free(mbuf);
    }
    return port.count(GetParam().counter) - before;
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(struck(), 0U);
    ASSERT_EQ(rte_net_vnic_set_faults(port.id(), GetParam().text), 0);
    EXPECT_GT(struck(), 0U);
    ASSERT_EQ(rte_net_vnic_set_faults(port.id(), ""), 0);
  }
  expect_accounted(pool, {&port});
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryFault,
                         testing::Values(RunTimeFault{"loss=0.5", Count::fault_loss},
                                         RunTimeFault{"burst_loss_enter=0.5,burst_loss_leave=0.5", Count::fault_loss},
                                         RunTimeFault{"duplicate=0.5", Count::fault_duplicate},
                                         RunTimeFault{"reorder=0.5,reorder_depth=2", Count::fault_reorder},
                                         RunTimeFault{"corrupt=0.5", Count::fault_corrupt},
                                         RunTimeFault{"truncate=0.5", Count::fault_truncate},
                                         RunTimeFault{"rate=1kbit,queue_bytes=500", Count::tx_queue_full},
                                         RunTimeFault{"rate=1kbit,queue_bytes=64Ki,ecn_bytes=1",
                                                      Count::fault_ecn_marked},
                                         RunTimeFault{"stall=0.5", Count::fault_stall_polls},
                                         RunTimeFault{"rx_out=0.5", Count::fault_rx_out_polls},
                                         RunTimeFault{"tx_full=0.5", Count::fault_tx_full_polls},
                                         RunTimeFault{"flap_frames=3,flap_lost=2", Count::fault_flap}));

TEST(FaultsAtRunTime, DelayFromTheNextFrameOn) {
  const Pool pool;
  Port port("net_vnic0");
  port.bring_up(simple(pool));
  port.send(pool, numbered(1));
  EXPECT_EQ(port.receive_all().size(), 1U);
  for (const char* const late : {"delay=1000s", "delay=0us,jitter=3600s"}) {
    ASSERT_EQ(rte_net_vnic_set_faults(port.id(), late), 0);
    for (std::uint32_t i = 0; i < 10; ++i) port.send(pool, numbered(i));
    EXPECT_EQ(port.receive_all().size(), 0U);
  }
  ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
  EXPECT_EQ(port.count(Count::rx_stopped), 20U);
  EXPECT_EQ(pool.in_use(), 0U);
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
