// SPDX-License-Identifier: Apache-2.0
// The link and its interrupt, and the peer that comes and goes.

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "port.h"
#include "vnic/api/set_faults.h"

namespace warpline::vnic {
namespace {

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
    if (rte_eth_link_get_nowait(port, &link) != 0) return -1;
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

TEST(Link, MayTakeSomeLooksToComeUp) {
  const Pool pool;
  Port port("net_vnic0", "link_up_after=3");
  const PortSetup setup = simple(pool);
  for (int round = 0; round < 2; ++round) {
    port.bring_up(setup);  // which looks once
    EXPECT_FALSE(is_up(port));
    port.send(pool, numbered(1));
    EXPECT_EQ(port.receive_all().size(), 0U);
    EXPECT_TRUE(is_up(port));
    port.send(pool, numbered(1));
    EXPECT_EQ(port.receive_all().size(), 1U);
    ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
  }
}

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

}  // namespace
}  // namespace warpline::vnic
