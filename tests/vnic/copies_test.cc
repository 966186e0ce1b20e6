// SPDX-License-Identifier: Apache-2.0
// Ports whose payload a copy engine of the program's moves, over every wire that carries any.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "port.h"
#include "vnic/api/set_faults.h"
#include "vnic/engine/lazy_copies_testing.h"

namespace warpline::vnic {
namespace {

constexpr int kCopyPatience = 10'000'000;

/// Registered for its life's ports; looks at them when they are gone.
class Copies : public LazyCopies {
 public:
  using LazyCopies::LazyCopies;
  ~Copies() {
    EXPECT_EQ(spoiled, 0);
    EXPECT_EQ(misused, 0);
    EXPECT_EQ(open_lanes(), 0U);
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;
  void serve(const Port& port) {
    const rte_net_vnic_copy_engine table = engine();
    ASSERT_EQ(rte_net_vnic_set_copy_engine(port.id(), &table), 0);
  }
};

struct Regions {
  struct Region {
    std::uintptr_t begin;
    std::size_t length;
  };
  std::vector<Region> all;

  explicit Regions(const Port& port) {
    const int count = rte_net_vnic_payload_regions(port.id(), found, this);
    EXPECT_EQ(count, static_cast<int>(all.size()));
  }
  static void found(void* self, void* begin, std::size_t length) {
    static_cast<Regions*>(self)->all.push_back({reinterpret_cast<std::uintptr_t>(begin), length});
  }
  [[nodiscard]] bool hold(const void* address, std::size_t length) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return std::ranges::any_of(
        all, [&](const Region& region) { return at >= region.begin && at + length <= region.begin + region.length; });
  }
};

TEST(CopyEngine, IsRegisteredWhileThePortIsStopped) {
  const Pool pool;
  Copies copies(1);
  Port port("net_vnic0");
  rte_net_vnic_copy_engine table = copies.engine();
  EXPECT_EQ(rte_net_vnic_set_copy_engine(31, &table), -ENODEV);
  EXPECT_EQ(rte_net_vnic_set_copy_engine(port.id(), &table), 0);
  EXPECT_EQ(rte_net_vnic_payload_regions(31, Regions::found, nullptr), -ENODEV);
  port.bring_up(simple(pool));
  EXPECT_EQ(rte_net_vnic_set_copy_engine(port.id(), &table), -EBUSY);
  EXPECT_EQ(rte_net_vnic_set_copy_engine(port.id(), nullptr), -EBUSY);
  ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
  table.landed = nullptr;
  EXPECT_EQ(rte_net_vnic_set_copy_engine(port.id(), &table), -EINVAL);
  EXPECT_EQ(rte_net_vnic_set_copy_engine(port.id(), nullptr), 0);
  ASSERT_EQ(rte_eth_dev_start(port.id()), 0);
  port.send(pool, numbered(1));
  EXPECT_EQ(port.receive_all().size(), 1U);
  EXPECT_EQ(copies.seen.size(), 0U);
}

TEST(CopyEngine, ThatHasNoLaneForAQueueIsAnErrorAtStart) {
  const QuietLog quiet;
  const Pool pool;
  Port port("net_vnic0");
  rte_net_vnic_copy_engine table = LazyCopies().engine();
  table.open = [](void* /*context*/, rte_net_vnic_direction /*direction*/, std::uint16_t /*queue*/) -> void* {
    return nullptr;
  };
  ASSERT_EQ(rte_net_vnic_set_copy_engine(port.id(), &table), 0);
  ASSERT_EQ(port.configure(simple(pool)), 0);
  EXPECT_EQ(rte_eth_dev_start(port.id()), -ENOMEM);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(CopyEngine, TouchesNoMemoryOfTheDevicesButItsRegions) {
  for (const char* const args : {"wire=loopback", "wire=source,size=200", "wire=static,size=200"}) {
    SCOPED_TRACE(args);
    const Pool pool(4095);
    Copies copies(2);
    Port port("net_vnic0", args);
    ASSERT_EQ(port.configure(simple(pool, 2)), 0);
    copies.serve(port);
    const Regions regions(port);
    EXPECT_EQ(regions.all.size(), 4U);
    for (const Regions::Region& region : regions.all) {
      EXPECT_EQ(region.begin % 4096, 0U);
      EXPECT_EQ(region.length % 4096, 0U);
      for (const Regions::Region& other : regions.all) {
        EXPECT_TRUE(&region == &other || region.begin + region.length <= other.begin ||
                    other.begin + other.length <= region.begin);
      }
    }
    ASSERT_EQ(rte_eth_dev_start(port.id()), 0);
    for (std::uint32_t i = 0; i < 1000; ++i) {
      port.send(pool, numbered(i, 200), static_cast<std::uint16_t>(i % 2));
      for (std::uint16_t queue = 0; queue < 2; ++queue) {
        for (rte_mbuf* const mbuf : port.receive(queue)) rte_pktmbuf_free(mbuf);
      }
    }
    ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
    EXPECT_GT(copies.seen.size(), 1000U);
    for (const rte_net_vnic_copy& copy : copies.seen) {
      ASSERT_TRUE(regions.hold(copy.to, copy.length) != regions.hold(copy.from, copy.length));
    }
    EXPECT_EQ(pool.in_use(), 0U);
  }
}

TEST(CopyEngine, JudgesTheAddressesOfEveryFrameThatComesBack) {
  constexpr std::uint32_t kFrames = 3000;
  const Pool pool(4095);
  Copies copies(2);
  Port port("net_vnic0", "wire=static,size=200");
  ASSERT_EQ(port.configure(simple(pool)), 0);
  copies.serve(port);
  ASSERT_EQ(rte_eth_dev_start(port.id()), 0);
  std::uint32_t number = 0;
  while (port.count(Count::tx_packets) < kFrames) {
    for (rte_mbuf* mbuf : port.receive()) {
      auto* const frame = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
      if (number % 3 != 0) packet::swap_macs(frame);
      if (number % 3 == 2) frame[11] ^= 1;
      if (number == kFrames || port.send(&mbuf, 1) != 1) {
        rte_pktmbuf_free(mbuf);
      } else {
        ++number;
      }
    }
  }
  EXPECT_EQ(port.count(Count::tx_kept), kFrames / 3);
  EXPECT_EQ(port.count(Count::tx_exchanged), kFrames / 3);
  EXPECT_EQ(port.count(Count::tx_spoiled), kFrames / 3);
  ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
}

/// The driver's own thread is the only one: what a sender left under way leaves as long as somebody receives.
TEST(CopyEngine, IsLookedAfterWhenNobodySends) {
  const Pool pool;
  Copies copies;
  Port port("net_vnic0");
  copies.serve(port);
  port.bring_up(simple(pool, 3));
  for (std::uint16_t queue = 0; queue < 3; ++queue) port.send(pool, numbered(queue), queue);
  EXPECT_EQ(copies.waiting(), 3U);
  copies.land(RTE_NET_VNIC_TX);
  for (std::uint16_t queue = 0; queue < 3; ++queue) {
    for (rte_mbuf* const mbuf : port.receive(queue)) rte_pktmbuf_free(mbuf);
  }
  EXPECT_EQ(port.count(Count::tx_packets), 3U);
  EXPECT_EQ(port.receive(0).size(), 0U);
  EXPECT_EQ(copies.waiting(), 1U);
  copies.land(RTE_NET_VNIC_RX);
  EXPECT_EQ(port.receive_all(), (Frames{numbered(0), numbered(1), numbered(2)}));
  expect_accounted(pool, {&port});
}

TEST(CopyEngine, ThatFailsLosesFramesAndNoMbufs) {
  const Pool pool;
  Copies copies;
  Port port("net_vnic0");
  copies.serve(port);
  port.bring_up(simple(pool));
  for (std::uint32_t round = 0; round < 2; ++round) {
    const std::uint64_t before = port.count(Count::tx_copy_failed);
    for (std::uint32_t i = 0; i < 10; ++i) port.send(pool, numbered(i));
    copies.land(RTE_NET_VNIC_TX, 4);
    EXPECT_EQ(port.receive().size(), 0U);
    EXPECT_EQ(port.receive().size(), 0U);
    copies.fail();
    EXPECT_EQ(port.receive().size(), 0U);
    EXPECT_EQ(port.receive().size(), 0U);
    for (std::uint32_t i = 0; i < 1000; ++i) port.send(pool, numbered(i));
    EXPECT_EQ(port.count(Count::tx_copy_failed) - before, 1006U);
    EXPECT_EQ(port.count(Count::rx_copy_failed), 4U * (round + 1));
    EXPECT_EQ(port.stats().oerrors, port.count(Count::tx_copy_failed));
    EXPECT_EQ(port.stats().ierrors, port.count(Count::rx_copy_failed));
    expect_accounted(pool, {&port});
    ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
    EXPECT_EQ(pool.in_use(), 0U);
    copies.mend();
    ASSERT_EQ(rte_eth_dev_start(port.id()), 0);
  }
  EXPECT_EQ(port.count(Count::tx_packets), port.count(Count::rx_copy_failed));
}

/// Sends at one port and receives at the other until `frames` have come, in their order.
void exchange(const Port& from, const Port& to, const Pool& pool, std::uint32_t frames, std::size_t length) {
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  rte_mbuf* pending = nullptr;
  for (int calls = 0; calls < kCopyPatience && received < frames; ++calls) {
    if (pending == nullptr && sent < frames && sent < received + 200) {
      pending = pool.chain(numbered(sent, length + sent % 100), {100});
      ++sent;
    }
    if (pending != nullptr && rte_eth_tx_burst(from.id(), 0, &pending, 1) == 1) pending = nullptr;
    if (&from != &to) {
      EXPECT_EQ(from.receive_one(), nullptr);
    }
    for (rte_mbuf* const mbuf : to.receive()) {
      const std::uint32_t number = received++;
      ASSERT_EQ(taken(mbuf), numbered(number, length + number % 100));
    }
    if (calls % 16 == 0) std::this_thread::yield();
  }
  EXPECT_EQ(received, frames);
}

class CopyEngines : public testing::TestWithParam<const char*> {};

TEST_P(CopyEngines, LoopBackEveryByteInOrder) {
  const Pool pool(4095);
  Copies copies(5);
  Port port("net_vnic0", GetParam());
  copies.serve(port);
  PortSetup setup = simple(pool);
  setup.conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  port.bring_up(setup);
  exchange(port, port, pool, 3000, 150);
  expect_accounted(pool, {&port});
  const auto out = copies.totals(RTE_NET_VNIC_RX);
  const auto in = copies.totals(RTE_NET_VNIC_TX);
  EXPECT_EQ(in.copies, 6000U);
  EXPECT_EQ(out.copies, 3000U);
  EXPECT_EQ(in.bytes, out.bytes);
  EXPECT_GT(in.most_waiting, 1U);
}

TEST_P(CopyEngines, CarryAPairWithOneOrBothEndsCopied) {
  for (const bool both : {false, true}) {
    const Pool pool(8191);
    Copies copies(3);
    Port a("net_vnic0", std::string("wire=net_vnic1,") + GetParam());
    Port b("net_vnic1", std::string("wire=net_vnic0,") + GetParam());
    copies.serve(a);
    if (both) copies.serve(b);
    PortSetup setup = simple(pool);
    setup.conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    a.bring_up(setup);
    b.bring_up(setup);
    exchange(a, b, pool, 1000, 150);
    exchange(b, a, pool, 1000, 150);
    expect_accounted(pool, {&a, &b});
  }
}

TEST_P(CopyEngines, StopWithCopiesUnderWay) {
  const Pool pool(8191);
  Copies copies(4);
  Port port("net_vnic0", GetParam());
  copies.serve(port);
  std::uint64_t received = 0;
  for (int round = 0; round < 30; ++round) {
    port.bring_up(simple(pool, 2));
    for (std::uint32_t i = 0; i < 60; ++i) port.send(pool, numbered(i), static_cast<std::uint16_t>(i % 2));
    for (std::uint16_t queue = 0; queue < 2 && round % 2 == 0; ++queue) {
      for (rte_mbuf* const mbuf : port.receive(queue)) {
        rte_pktmbuf_free(mbuf);
        ++received;
      }
    }
    if (round % 3 == 0) {
      ASSERT_EQ(rte_eth_dev_rx_queue_stop(port.id(), 0), 0);
      ASSERT_EQ(rte_eth_dev_tx_queue_stop(port.id(), 1), 0);
    }
    ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
    EXPECT_EQ(copies.waiting(), 0U);
    EXPECT_EQ(copies.open_lanes(), 0U);
    EXPECT_EQ(pool.in_use(), 0U);
  }
  EXPECT_EQ(port.count(Count::tx_packets), 30U * 60);
  EXPECT_EQ(30U * 60, received + port.count(Count::rx_stopped) + port.count(Count::rx_link_down));
}

TEST_P(CopyEngines, MeetFaultsAndConserve) {
  const Pool pool(8191);
  Copies copies(3);
  Port port("net_vnic0",
            std::string("loss=0.2,duplicate=0.3,reorder=0.2,corrupt=0.1,truncate=0.1,buffer=64Ki,") + GetParam());
  copies.serve(port);
  port.bring_up(simple(pool));
  std::uint64_t received = 0;
  const auto receive = [&] {
    for (rte_mbuf* const mbuf : port.receive()) {
      rte_pktmbuf_free(mbuf);
      ++received;
    }
  };
  for (std::uint32_t i = 0; i < 3000; ++i) {
    port.send(pool, numbered(i, 500));
    if (i % 7 == 0) receive();
  }
  const auto lost = [&] {
    return port.count(Count::fault_loss) + port.count(Count::rx_no_descriptor) + port.count(Count::rx_runt);
  };
  for (int calls = 0; calls < kCopyPatience && 3000 + port.count(Count::fault_duplicate) != received + lost();
       ++calls) {
    receive();
    std::this_thread::yield();
  }
  EXPECT_EQ(port.count(Count::tx_packets), 3000U);
  EXPECT_EQ(3000 + port.count(Count::fault_duplicate), received + lost());
  expect_accounted(pool, {&port});
}

TEST_P(CopyEngines, SupplyAndSwallowOnTheWiresThatDo) {
  for (const char* const wire : {"wire=static", "wire=source", "wire=sink"}) {
    SCOPED_TRACE(wire);
    const Pool pool(4095);
    Copies copies(2);
    Port port("net_vnic0", std::string(wire) + ",size=300,flows=7," + GetParam());
    copies.serve(port);
    port.bring_up(simple(pool));
    std::set<std::string> flows;
    std::uint32_t received = 0;
    const bool supplies = std::strcmp(wire, "wire=sink") != 0;
    for (int calls = 0; calls < kCopyPatience && received < 2000 && supplies; ++calls) {
      for (rte_mbuf* const mbuf : port.receive()) {
        const packet::FrameBytes frame = taken(mbuf);
        ASSERT_EQ(frame.size(), 300U);
        ASSERT_EQ(packet::with_checksums(frame), frame);
        flows.emplace(frame.begin(), frame.end());
        ++received;
      }
      std::this_thread::yield();
    }
    EXPECT_EQ(flows.size(), supplies ? 7U : 0U);
    for (std::uint32_t i = 0; i < 500; ++i) port.send(pool, numbered(i, 200));
    ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
    EXPECT_EQ(port.count(Count::tx_packets), 500U);
    EXPECT_EQ(port.count(Count::tx_bytes), 100000U);
    EXPECT_EQ(copies.totals(RTE_NET_VNIC_TX).bytes, 100000U);
    EXPECT_GE(copies.totals(RTE_NET_VNIC_RX).bytes, received * std::uint64_t{300});
    EXPECT_EQ(pool.in_use(), 0U);
  }
}

/// One thread receives, another sends: each a lane of its own, and the receiver looks after the sender's.
TEST_P(CopyEngines, ServeTwoThreads) {
  constexpr std::uint32_t kFrames = 5000;
  const Pool senders(4095, 2048, 0);
  const Pool receivers(4095, 2048, 0);
  Copies copies(3);
  Port port("net_vnic0", GetParam());
  copies.serve(port);
  port.bring_up(simple(receivers));
  std::atomic<std::uint32_t> received{0};
  std::thread sender([&] {
    for (std::uint32_t i = 0; i < kFrames; ++i) {
      while (i > received.load(std::memory_order_relaxed) + 100) std::this_thread::yield();
      port.send(senders, numbered(i, 300));
    }
  });
  for (int calls = 0; calls < kCopyPatience && received < kFrames; ++calls) {
    for (rte_mbuf* const mbuf : port.receive()) {
      EXPECT_EQ(taken(mbuf), numbered(received, 300));
      ++received;
    }
    std::this_thread::yield();
  }
  sender.join();
  EXPECT_EQ(received, kFrames);
  expect_accounted(receivers, {&port});
  ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CopyEngines, testing::Values("engine=inline", "engine=thread"),
                         [](const auto& param) { return std::string(param.param).substr(7); });

}  // namespace
}  // namespace warpline::vnic
