// SPDX-License-Identifier: Apache-2.0
// Each way of recycling below a router between four ports, while routes, and so the links, keep changing: no buffer is
// lost, and what came back how is counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "warpline/base/property_testing.h"
#include "warpline/memory/packet_pool.h"
#include "warpline/memory/recycle_setup.h"
#include "warpline/packet/udp_frame.h"
#include "warpline/port/port.h"
#include "warpline/router/route_stage.h"

namespace warpline {
namespace {

constexpr std::uint16_t kPorts = 4;
constexpr std::uint16_t kRoutedBurst = 32;
constexpr std::uint16_t kRing = 128;
constexpr std::uint32_t kFrame = 60;
constexpr unsigned kRounds = 100;  ///< polls until frames are written afresh: no TTL expires by then
/// MAC address of all ports and gateways: on wire=static any port may receive a frame that another has sent.
constexpr MacAddress kMac{{2, 0, 0, 0, 0, 1}};
constexpr Nanos kDawn{0};

/// 10.PORT.0.0/16 is behind the gateway of that port.
Ipv4Address network_behind(std::uint16_t port) { return {{10, static_cast<std::uint8_t>(port), 0, 0}}; }

/// The lookup of that: a real table takes longer to make than all the rest.
struct BySecondByte {
  using V4Key = std::uint32_t;
  using V6Key = Ipv6Address;
  static Result<BySecondByte> make(const route::RouteSet& /*set*/, const router::TablesPlace& /*place*/,
                                   BySecondByte /*unused*/) {
    return BySecondByte{};
  }
  static Bytes memory(const route::RouteSet& /*set*/) { return {0}; }
  static V4Key v4_key(const std::uint8_t* ip, std::uint32_t /*have*/) {
    return packet::load_be32(ip + packet::Ipv4View::kDestination);
  }
  static V6Key v6_key(const std::uint8_t* /*ip*/, std::uint32_t /*have*/) { return {}; }
  void find(const V4Key* keys, std::uint32_t* hops, std::uint16_t n) const {
    for (std::uint16_t i = 0; i < n; ++i) hops[i] = keys[i] >> 16 & 0xff;
  }
  void find(const V6Key* /*keys*/, std::uint32_t* hops, std::uint16_t n) const { std::fill_n(hops, n, 0U); }
};
static_assert(router::RouteLookup<BySecondByte>);

/// By which port the next frames leave: of each ten, `tenths` by one, the others by all in turn.
struct Traffic {
  std::uint16_t most;
  unsigned tenths;
};

class Routed {
 public:
  Routed(memory::RecycleWay way, bool one_pool) {
    static int made = 0;
    pool_.emplace(*memory::PacketPool::make("routed" + std::to_string(made++), 4095, 64, 2048, runtime::kAnyNode));
    memory::RecyclePlan plan;
    plan.way = way;
    plan.lcores.emplace_back();
    for (std::uint16_t i = 0; i < kPorts; ++i) {
      ports_.push_back(*port::Port::open("net_vnic" + std::to_string(i) + ",wire=static,size=60"));
      port::PortSettings config;
      config.rx_ring = config.tx_ring = kRing;
      EXPECT_TRUE(
          ports_[i].configure(config, {.rx = 1, .tx = 1, .one_pool = one_pool && memory::wants_fast_free(way)}).ok());
      EXPECT_TRUE(ports_[i].attach(pool_->get()).ok());
      const port::PortQueue queue{ports_[i].id(), 0};
      plan.lcores[0].rx.push_back(queue);
      plan.lcores[0].tx.push_back(queue);
      own_.push_back({queue.port, {.mac = kMac, .mtu = 1500, .addresses = {}}, pool_->get()});
    }
    recycling_ = memory::set_up_recycling(plan);
    for (port::Port& port : ports_) EXPECT_TRUE(port.start().ok());
    make_routes();
    std::vector<datapath::QueuePath*> paths;
    for (std::uint16_t i = 0; i < kPorts; ++i) {
      datapath::QueuePath& path = *paths_.emplace_back(std::make_unique<datapath::QueuePath>());
      path.rx = path.tx = path.reply = {ports_[i].id(), 0};
      path.burst = kRoutedBurst;
      path.deadline_ticks = 0;
      path.tx_retries = 64;
      path.recycler = recycling_.lcores[0].get();
      path.recycle_index = i;
      paths.push_back(&path);
    }
    lcore_ = std::make_unique<router::RouteLcore>(own_, paths, neighbours_);
    stage_ = std::make_unique<router::RouteStage<BySecondByte>>(generations_, *lcore_, budget_, kRoutedBurst);
  }

  void run(const Traffic& traffic) {
    traffic_ = traffic;
    rte_mempool_obj_iter(pool_->get(), write_frame, this);
    for (unsigned round = 0; round < kRounds; ++round) stage_->poll();
  }

  /// Stops a port as the control thread of a run does: what takes its buffers lets go of it first.
  void stop_and_start(std::uint16_t port) {
    const port::PortQueue queue{ports_[port].id(), 0};
    memory::Recycler* const recycler = recycling_.lcores[0].get();
    stage_->drain();
    if (recycler != nullptr) {
      recycler->unlink_tx(queue);
      recycler->unlink_rx(queue);
      while (!recycler->unlinked()) recycler->poll(0);
      for (const memory::Recycler::Link& link : recycler->links()) EXPECT_FALSE(link.rx == queue || link.tx == queue);
    }
    ports_[port].stop();
    EXPECT_TRUE(ports_[port].start().ok());
    if (recycler == nullptr) return;
    recycler->relink_tx(queue);
    recycler->relink_rx(queue);
  }

  /// Ends it. Every packet and every buffer is accounted for.
  void finish() {
    stage_->drain();
    std::uint64_t in = 0, out = 0;
    for (const auto& path : paths_) {
      in += path->received.packets.get();
      out += path->sent.packets.get();
      EXPECT_EQ(path->sent.drops.total(), 0U);
    }
    EXPECT_EQ(in, out);
    EXPECT_GT(in, 0U);
    packets_ = in;
    std::uint64_t recycled = 0;
    for (port::Port& port : ports_) {
      recycled += port.extended_counters()["recycled"];
      port.stop();
    }
    EXPECT_EQ(recycled, recycling_.recycled().value_or(0)) << "what drivers count and what is reported";
    EXPECT_EQ(pool_->in_use(), 0U);
  }

  [[nodiscard]] std::uint64_t packets() const { return packets_; }
  [[nodiscard]] std::uint64_t recycled() const { return recycling_.recycled().value_or(0); }
  [[nodiscard]] const std::vector<std::string>& notes() const { return recycling_.notes; }
  [[nodiscard]] std::vector<memory::Recycler::Link> links() const { return recycling_.lcores[0]->links(); }
  [[nodiscard]] std::uint16_t id(std::uint16_t port) const { return ports_[port].id(); }

 private:
  void make_routes() {
    std::vector<router::Hop> hops;
    for (std::uint16_t port = 0; port < kPorts; ++port) {
      const route::NeighbourKey gateway =
          route::NeighbourKey::of(port, Ipv4Address{{192, 0, 2, static_cast<std::uint8_t>(port)}});
      const std::uint32_t slot = neighbours_.pin(gateway, kDawn);
      neighbours_.learn(gateway, {.mac = kMac, .answers = true}, kDawn);
      static_cast<void>(neighbours_.use(slot, kDawn));
      hops.push_back({slot, port, route::HopKind::gateway});
    }
    generations_.publish(
        std::make_unique<router::Generation<BySecondByte>>(router::Generation<BySecondByte>{{}, std::move(hops), 1}));
  }

  static void write_frame(rte_mempool* /*pool*/, void* opaque, void* object, unsigned index) {
    const Traffic& traffic = static_cast<const Routed*>(opaque)->traffic_;
    const auto scattered = static_cast<std::uint16_t>(index / 10 % kPorts);
    Ipv4Address to = network_behind(index % 10 < traffic.tenths ? traffic.most : scattered);
    to.bytes[3] = static_cast<std::uint8_t>(index);
    auto* const frame = static_cast<std::uint8_t*>(static_cast<rte_mbuf*>(object)->buf_addr) + RTE_PKTMBUF_HEADROOM;
    EXPECT_NE(packet::emit({.destination_mac = kMac,
                            .source_mac = kMac,
                            .source = Ipv4Address{{198, 18, 0, 1}},
                            .destination = to,
                            .source_port = 9,
                            .destination_port = 9,
                            .time_to_live = UINT8_MAX},
                           {frame, kFrame}),
              0U);
  }

  std::optional<memory::PacketPool> pool_;
  std::vector<port::Port> ports_;
  std::vector<router::RoutePort> own_;
  memory::Recycling recycling_;
  route::NeighbourTable neighbours_{64};
  router::GenerationSwitch<BySecondByte> generations_;
  datapath::PacketBudget budget_{0};
  std::vector<std::unique_ptr<datapath::QueuePath>> paths_;
  std::unique_ptr<router::RouteLcore> lcore_;
  std::unique_ptr<router::RouteStage<BySecondByte>> stage_;
  Traffic traffic_{};
  std::uint64_t packets_ = 0;
};

bool recycles(memory::RecycleWay way) {
  return way == memory::RecycleWay::direct || way == memory::RecycleWay::automatic;
}

constexpr memory::RecycleWay kWays[] = {memory::RecycleWay::off, memory::RecycleWay::fast_free,
                                        memory::RecycleWay::cache, memory::RecycleWay::direct,
                                        memory::RecycleWay::automatic};

TEST(RoutedPorts, EachWayLosesNothingAndCountsWhatCameBack) {
  for (const memory::RecycleWay way : kWays) {
    for (const bool one_pool : {true, false}) {
      SCOPED_TRACE(std::string(name(way)) + (one_pool ? ", promised" : ", not promised"));
      Routed routed(way, one_pool);
      for (std::uint16_t port = 0; port < kPorts; ++port) routed.run({port, 0});
      routed.finish();
      EXPECT_EQ(routed.recycled() != 0, recycles(way));
      const bool unpromised = way == memory::RecycleWay::fast_free && !one_pool;
      EXPECT_EQ(routed.notes().size(), unpromised ? kPorts : 0U);
      for (const std::string& note : routed.notes()) {
        EXPECT_NE(note.find("its buffers are not all of one pool; they are freed as with --recycle off"),
                  std::string::npos);
      }
    }
  }
}

/// All leave by one port, whose queue one receiver alone may take from.
TEST(RoutedPorts, OneQueueIsClaimedOnce) {
  for (const memory::RecycleWay way : {memory::RecycleWay::direct, memory::RecycleWay::automatic}) {
    Routed routed(way, true);
    for (int i = 0; i < 8; ++i) routed.run({2, 10});
    const std::vector<memory::Recycler::Link> links = routed.links();
    ASSERT_EQ(links.size(), 1U);
    EXPECT_EQ(links[0].tx.port, routed.id(2));
    routed.finish();
    EXPECT_LE(routed.recycled(), routed.packets());
    EXPECT_GT(routed.recycled(), routed.packets() / 5) << "a receiver of four can take what it took";
  }
}

WARPLINE_PROPERTY(RoutedPorts, NothingIsLostHoweverRoutesChangeAndPortsStop, ()) {
  Routed routed(*rc::gen::elementOf(std::vector<memory::RecycleWay>(std::begin(kWays), std::end(kWays))),
                *rc::gen::arbitrary<bool>());
  const auto phases = *rc::gen::inRange(1, 8);
  for (int phase = 0; phase < phases; ++phase) {
    routed.run({*rc::gen::inRange<std::uint16_t>(0, kPorts), *rc::gen::inRange(0U, 11U)});
    if (*rc::gen::inRange(0, 3) == 0) routed.stop_and_start(*rc::gen::inRange<std::uint16_t>(0, kPorts));
  }
  routed.run({0, 5});
  routed.finish();
  RC_ASSERT(!testing::Test::HasFailure());
}

}  // namespace
}  // namespace warpline
