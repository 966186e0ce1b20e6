// SPDX-License-Identifier: Apache-2.0
// What is linked, what is refused and in which words, and that a queue is let go before it stops.
#include "warpline/memory/recycle_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "warpline/memory/packet_pool.h"
#include "warpline/port/port.h"
#include "warpline/runtime/eal_environment.h"

namespace warpline {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const auto* const kEal = testing::AddGlobalTestEnvironment(new runtime::EalEnvironment(1));

constexpr std::uint16_t kBurst = 32;

port::PortSettings rings(std::uint16_t ring = 128) {
  port::PortSettings config;
  config.rx_ring = config.tx_ring = ring;
  return config;
}

/// Ports with one pool, set up but not started.
class Ports {
 public:
  explicit Ports(const std::vector<std::string>& specs, const port::PortSettings& config = rings(),
                 bool fast_free = false, std::uint16_t queues = 2) {
    static int made = 0;
    pool_.emplace(*memory::PacketPool::make("recycle" + std::to_string(made), 4095, 64, 2048, runtime::kAnyNode));
    other_.emplace(*memory::PacketPool::make("other" + std::to_string(made++), 63, 0, 2048, runtime::kAnyNode));
    for (const std::string& spec : specs) {
      ports_.push_back(*port::Port::open(spec));
      EXPECT_TRUE(ports_.back().configure(config, {.rx = queues, .tx = queues, .one_pool = fast_free}).ok());
      EXPECT_TRUE(ports_.back().attach(pool_->get()).ok());
    }
  }
  ~Ports() {
    ports_.clear();
    EXPECT_EQ(pool_->in_use(), 0U);
  }
  Ports(const Ports&) = delete;
  Ports& operator=(const Ports&) = delete;

  void start() {
    for (port::Port& port : ports_) EXPECT_TRUE(port.start().ok());
  }
  [[nodiscard]] port::PortQueue queue(std::size_t port, std::uint16_t queue = 0) const {
    return {ports_[port].id(), queue};
  }
  [[nodiscard]] std::uint64_t count(std::size_t port, const char* name) const {
    return ports_[port].extended_counters()[name];
  }
  [[nodiscard]] const port::Port& port(std::size_t port) const { return ports_[port]; }
  [[nodiscard]] rte_mempool* pool() const { return pool_->get(); }
  [[nodiscard]] rte_mempool* other_pool() const { return other_->get(); }

 private:
  std::optional<memory::PacketPool> pool_;
  std::optional<memory::PacketPool> other_;
  std::vector<port::Port> ports_;
};

const std::vector<std::string> kStatic = {"net_vnic0,wire=static", "net_vnic1,wire=static"};

/// Links asked for, all queues being one lcore's.
memory::RecyclePlan direct(std::vector<port::PortQueue> rx, std::vector<port::PortQueue> tx,
                           std::vector<memory::RecycleLink> links) {
  return {memory::RecycleWay::direct, {{std::move(rx), std::move(tx)}}, std::move(links)};
}

/// Polls `rx` as one that forwards to `tx` does. Returns the packets.
std::uint32_t forward(memory::Recycler& recycler, port::PortQueue rx, port::PortQueue tx, unsigned bursts,
                      std::size_t rx_index = 0, std::size_t tx_index = 0) {
  std::uint32_t packets = 0;
  for (unsigned i = 0; i < bursts; ++i) {
    rte_mbuf* mbufs[kBurst];
    recycler.poll(rx_index);
    const std::uint16_t count = rte_eth_rx_burst(rx.port, rx.queue, mbufs, kBurst);
    EXPECT_EQ(rte_eth_tx_burst(tx.port, tx.queue, mbufs, count), count);
    if (recycler.watches()) recycler.left(rx_index, tx_index, count);
    packets += count;
  }
  return packets;
}

TEST(RecycleSetup, WhatIsSentByOnePortIsReceivedIntoByAnother) {
  for (const bool fast_free : {false, true}) {
    Ports ports(kStatic, rings(), fast_free);
    const port::PortQueue rx = ports.queue(0);
    const port::PortQueue tx = ports.queue(1);
    const memory::Recycling made = memory::set_up_recycling(direct({rx}, {tx}, {{rx, tx, ports.pool()}}));
    EXPECT_THAT(made.notes, IsEmpty());
    ASSERT_NE(made.lcores[0], nullptr);
    EXPECT_FALSE(made.lcores[0]->watches());
    ports.start();
    const std::uint32_t packets = forward(*made.lcores[0], rx, tx, 100);
    EXPECT_GT(made.recycled(), packets - 128U);
    EXPECT_EQ(made.recycled(), ports.count(1, "recycled"));
    EXPECT_LE(ports.count(0, "mempool_gets"), 4 * 128U);
  }
}

TEST(RecycleSetup, AutomaticMapsWhereTheFirstPacketsLeave) {
  Ports ports(kStatic);
  const memory::RecyclePlan plan{
      memory::RecycleWay::automatic, {{{ports.queue(0), ports.queue(1)}, {ports.queue(0), ports.queue(1)}}}, {}};
  const memory::Recycling made = memory::set_up_recycling(plan);
  EXPECT_THAT(made.notes, IsEmpty());
  memory::Recycler& recycler = *made.lcores[0];
  EXPECT_TRUE(recycler.watches());
  ports.start();
  EXPECT_THAT(recycler.links(), IsEmpty());
  forward(recycler, ports.queue(0), ports.queue(1), 2, 0, 1);
  EXPECT_THAT(recycler.links(), ElementsAre(memory::Recycler::Link{ports.queue(0), ports.queue(1)}));
  // Another receive queue cannot have the same, and does without.
  forward(recycler, ports.queue(1), ports.queue(1), 2, 1, 1);
  EXPECT_EQ(recycler.links().size(), 1U);
  forward(recycler, ports.queue(0), ports.queue(1), 100, 0, 1);
  EXPECT_GT(recycler.recycled(), 90U * kBurst);
}

TEST(RecycleSetup, TwoTransmitQueuesFeedOneReceiveQueue) {
  Ports ports(kStatic);
  const port::PortQueue rx = ports.queue(0);
  const std::vector<port::PortQueue> tx = {ports.queue(0), ports.queue(1), ports.queue(1, 1)};
  const memory::Recycling made = memory::set_up_recycling(direct({rx}, tx, {{rx, tx[0]}, {rx, tx[1]}, {rx, tx[2]}}));
  EXPECT_THAT(made.notes,
              ElementsAre(AllOf(HasSubstr("not linked with port net_vnic1 tx 1"),
                                HasSubstr("takes those of two already"), HasSubstr("cache is used instead"))));
  EXPECT_EQ(made.lcores[0]->links().size(), 2U);
  ports.start();
  std::uint32_t packets = 0;
  for (unsigned i = 0; i < 100; ++i) packets += forward(*made.lcores[0], rx, tx[i % 2], 1);
  EXPECT_GT(made.recycled(), packets - 256U);
}

struct Refusal {
  const char* name;
  memory::RecyclePlan (*plan)(const Ports&);
  std::vector<std::string> specs;
  const char* words;
  const char* instead;
  bool fast_free = false;
};

class Refuses : public testing::TestWithParam<Refusal> {};

TEST_P(Refuses, InWords) {
  const Ports ports(GetParam().specs, rings(), GetParam().fast_free);
  const memory::Recycling made = memory::set_up_recycling(GetParam().plan(ports));
  EXPECT_THAT(made.notes,
              ElementsAre(AllOf(HasSubstr("rx"), HasSubstr(GetParam().words), HasSubstr(GetParam().instead))));
}

const std::vector<std::string> kNull = {"net_null0"};

INSTANTIATE_TEST_SUITE_P(
    , Refuses,
    testing::Values(
        Refusal{"NoSuchReceiveQueue",
                [](const Ports& p) { return direct({p.queue(0, 7)}, {p.queue(0)}, {{p.queue(0, 7), p.queue(0)}}); },
                kStatic, "no such receive queue", "cache is used instead"},
        Refusal{"NoSuchTransmitQueue",
                [](const Ports& p) { return direct({p.queue(0)}, {p.queue(0, 7)}, {{p.queue(0), p.queue(0, 7)}}); },
                kStatic, "no such transmit queue", "nothing is linked"},
        Refusal{"NoSuchPort", [](const Ports& p) { return direct({p.queue(0)}, {{31, 0}}, {{p.queue(0), {31, 0}}}); },
                kStatic, "no such transmit queue", "nothing is linked"},
        Refusal{"ATransmitQueueTwice",
                [](const Ports& p) {
                  return direct({p.queue(0), p.queue(1)}, {p.queue(0)},
                                {{p.queue(0), p.queue(0)}, {p.queue(1), p.queue(0)}});
                },
                kStatic, "port net_vnic0 rx 0 takes its buffers already", "fast-free is used instead", true},
        Refusal{"AnotherPool",
                [](const Ports& p) {
                  return direct({p.queue(0)}, {p.queue(0)}, {{p.queue(0), p.queue(0), p.other_pool()}});
                },
                kStatic, "of another pool", "cache is used instead"},
        Refusal{"AnotherLcore",
                [](const Ports& p) {
                  return memory::RecyclePlan{
                      memory::RecycleWay::direct, {{{p.queue(0)}, {}}, {{}, {p.queue(0)}}}, {{p.queue(0), p.queue(0)}}};
                },
                kStatic, "one lcore receives and another sends", "fast-free is used instead", true},
        Refusal{"NobodysQueues",
                [](const Ports& p) {
                  return memory::RecyclePlan{
                      memory::RecycleWay::direct, {{{p.queue(0)}, {p.queue(0)}}}, {{p.queue(1), p.queue(1)}}};
                },
                kStatic, "no lcore polls them", "is used instead"},
        Refusal{"ADriverWithoutTheHooks",
                [](const Ports& p) { return direct({p.queue(0)}, {p.queue(0)}, {{p.queue(0), p.queue(0)}}); }, kNull,
                "net_null has no hooks for it", "off is used instead"},
        Refusal{"ASenderWithoutTheHooks",
                [](const Ports& p) { return direct({p.queue(0)}, {p.queue(1)}, {{p.queue(0), p.queue(1)}}); },
                {"net_vnic0,wire=static", "net_null0"},
                "net_null has no hooks for it",
                "off is used instead"},
        Refusal{"AutomaticOnADriverWithoutTheHooks",
                [](const Ports& p) {
                  return memory::RecyclePlan{memory::RecycleWay::automatic, {{{p.queue(0)}, {p.queue(0)}}}, {}};
                },
                kNull, "net_null has no hooks for it", "off is used instead"},
        Refusal{"AutomaticInAPipeline",
                [](const Ports& p) {
                  return memory::RecyclePlan{
                      memory::RecycleWay::automatic, {{{p.queue(0)}, {}}, {{}, {p.queue(0)}}}, {}};
                },
                kStatic, "sent by another lcore", "through the pool"}),
    [](const auto& tested) { return tested.param.name; });

/// Drivers that free fast put buffers back as they are (DPDK, rte_ip_frag.h: "direct and non-segmented").
TEST(RecycleSetup, BuffersThatAreChainedAreNotFreedFast) {
  const std::string fast = "mbuf_fast_free";
  port::PortSettings config = rings();
  const Ports whole({"net_vnic0"}, config, true);
  EXPECT_THAT(whole.port(0).setup().tx_offloads, testing::Contains(fast));
  config.mtu = 9000;
  const Ports chained({"net_vnic1"}, config, true);
  EXPECT_THAT(chained.port(0).setup().tx_offloads, testing::Not(testing::Contains(fast)));
  EXPECT_THAT(chained.port(0).setup().refused, IsEmpty());
  config.tx_offloads = {fast};
  const Ports asked({"net_vnic2"}, config);
  EXPECT_THAT(asked.port(0).setup().refused, ElementsAre(HasSubstr("frames lie in several buffers")));
}

TEST(RecycleSetup, FramesInSeveralBuffersAreRefused) {
  port::PortSettings config = rings();
  config.rx_offloads = {"scatter"};
  config.tx_offloads = {"multi_segs"};
  const Ports ports({"net_vnic0,wire=static"}, config);
  const memory::Recycling made =
      memory::set_up_recycling(direct({ports.queue(0)}, {ports.queue(0)}, {{ports.queue(0), ports.queue(0)}}));
  EXPECT_THAT(made.notes, ElementsAre(HasSubstr("port net_vnic0 rx 0 receives frames into several buffers")));
  EXPECT_EQ(made.lcores[0], nullptr);
  EXPECT_FALSE(made.recycled().has_value());
}

TEST(RecycleSetup, FastFreeAndCacheThatCannotBeAreToldToo) {
  const Ports ports({"net_vnic0,wire=static", "net_null0"});
  const memory::RecycleQueues lcore{{ports.queue(0)}, {ports.queue(0), ports.queue(1)}};
  EXPECT_THAT(
      memory::set_up_recycling({memory::RecycleWay::cache, {lcore}, {}}).notes,
      ElementsAre(AllOf(HasSubstr("port net_null0 tx 0: no freeing into the cache"), HasSubstr("--recycle off"))));
  EXPECT_THAT(memory::set_up_recycling({memory::RecycleWay::fast_free, {lcore}, {}}).notes.size(), 2U);
  EXPECT_THAT(memory::set_up_recycling({memory::RecycleWay::off, {lcore}, {}}).notes, IsEmpty());
}

TEST(RecycleSetup, ThresholdsThatWouldKeepBuffersFromMovingAreMended) {
  port::PortSettings config = rings(256);
  config.rx_free_thresh = 16;
  config.tx_rs_thresh = 64;
  config.tx_free_thresh = 64;
  Ports ports(kStatic, config);
  const port::PortQueue rx = ports.queue(0);
  const port::PortQueue tx = ports.queue(1);
  const memory::Recycling made = memory::set_up_recycling(direct({rx}, {tx}, {{rx, tx}}));
  EXPECT_THAT(made.notes, ElementsAre(AllOf(HasSubstr("port net_vnic1 tx 0: set up again"), HasSubstr("64"),
                                            HasSubstr("it is 16 now"))));
  rte_eth_txq_info info;
  ASSERT_EQ(rte_eth_tx_queue_info_get(tx.port, tx.queue, &info), 0);
  EXPECT_EQ(info.conf.tx_rs_thresh, 16);
  ports.start();
  const std::uint32_t packets = forward(*made.lcores[0], rx, tx, 100);
  EXPECT_GT(made.recycled(), packets - 256U);
}

TEST(Recycler, LetsGoOfAQueueBeforeItStops) {
  Ports ports(kStatic);
  const port::PortQueue rx = ports.queue(0);
  const port::PortQueue tx = ports.queue(1);
  for (const bool automatic : {false, true}) {
    memory::RecyclePlan plan = direct({rx}, {tx}, {{rx, tx}});
    if (automatic) plan.way = memory::RecycleWay::automatic;
    const memory::Recycling made = memory::set_up_recycling(plan);
    memory::Recycler& recycler = *made.lcores[0];
    ports.start();
    forward(recycler, rx, tx, 10);
    ASSERT_EQ(recycler.links().size(), 1U);
    EXPECT_TRUE(recycler.unlinked());
    for (const bool sender : {true, false}) {
      sender ? recycler.unlink_tx(tx) : recycler.unlink_rx(rx);
      EXPECT_FALSE(recycler.unlinked());
      recycler.poll(0);
      EXPECT_TRUE(recycler.unlinked());
      EXPECT_THAT(recycler.links(), IsEmpty());
      const std::uint64_t before = recycler.recycled();
      forward(recycler, rx, tx, 1000);
      EXPECT_EQ(recycler.recycled(), before);
      sender ? recycler.relink_tx(tx) : recycler.relink_rx(rx);
      // By itself, or, watching, when the traffic has been seen to fit again.
      forward(recycler, rx, tx, 10 * memory::RecycleWatch::kWindow / kBurst);
      EXPECT_EQ(recycler.links().size(), 1U);
      EXPECT_GT(recycler.recycled(), before);
    }
    for (const port::PortQueue queue : {rx, tx}) rte_eth_dev_stop(queue.port);
  }
}

TEST(Recycler, AQueueOfAnotherLcoreIsNoneOfItsBusiness) {
  const Ports ports(kStatic);
  const memory::Recycling made =
      memory::set_up_recycling(direct({ports.queue(0)}, {ports.queue(1)}, {{ports.queue(0), ports.queue(1)}}));
  memory::Recycler& recycler = *made.lcores[0];
  recycler.unlink_tx(ports.queue(1, 1));
  recycler.unlink_rx(ports.queue(0, 1));
  EXPECT_TRUE(recycler.unlinked());
  recycler.poll(0);
  EXPECT_EQ(recycler.links().size(), 1U);
}

}  // namespace
}  // namespace warpline
