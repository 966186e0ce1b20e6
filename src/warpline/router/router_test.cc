// SPDX-License-Identifier: Apache-2.0
#include "warpline/router/router.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <rte_ethdev.h>

#include "warpline/memory/packet_pool.h"
#include "warpline/packet/frame_testing.h"
#include "warpline/packet/udp_frame.h"
#include "warpline/port/port.h"
#include "warpline/port/ring_pair.h"
#include "warpline/route/route_file.h"
#include "warpline/router/route_layout.h"
#include "warpline/runtime/eal_environment.h"

namespace warpline::router {
namespace {

const auto* const kEal =
    testing::AddGlobalTestEnvironment(new runtime::EalEnvironment(0, Bytes{std::uint64_t{1} << 30}));

constexpr std::uint32_t kRouterBuffers = 4095;

/// A host on the link of one of the router's ports.
struct Host {
  MacAddress mac;
  IpAddress v4;
  IpAddress v6;
};
const Host kWest{{{2, 0, 0, 0, 1, 9}}, *parse_ip("10.0.0.9"), *parse_ip("fd00:1::9")};
const Host kEast{{{2, 0, 0, 0, 2, 9}}, *parse_ip("10.0.1.9"), *parse_ip("fd00:2::9")};
const IpAddress kFarV4 = *parse_ip("10.77.0.5");
const IpAddress kFarV6 = *parse_ip("fd00:77::5");

/// A router with two ports whose far ends are in the test's hands.
class RouterTest : public testing::TestWithParam<LookupKind> {
 protected:
  void SetUp() override {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    // Its rings order what this thread and the lcore do to a packet; the tables' switch has a test of its own.
    GTEST_SKIP() << "DPDK's own ring driver is not compiled for ThreadSanitizer";
#endif
#endif
    static int pools = 0;
    pool_.emplace(
        *memory::PacketPool::make("route" + std::to_string(pools++), kRouterBuffers, 0, 2048, runtime::kAnyNode));
    routes_file_ = testing::TempDir() + "routes" + std::to_string(getpid());
    write_routes("10.77.0.0/16 via 10.0.1.9\nfd00:77::/32 via fd00:2::9\n");
    routing_.lookup = GetParam();
    routing_.routes = routes_file_;
    settings_.forward.burst = 32;
    const char* const addresses[2][2] = {{"10.0.0.1/24", "fd00:1::1/64"}, {"10.0.1.1/24", "fd00:2::1/64"}};
    std::vector<RoutePort> ports;
    std::vector<route::RouterPort> own;
    for (int i = 0; i < 2; ++i) {
      const auto ids = *port::make_ring_pair(1, 1024, runtime::kAnyNode);
      ports_.push_back(started(ids.first));
      far_.push_back(started(ids.second));
      route::RouterPort port{.mac = ports_.back().mac(), .mtu = 1500, .addresses = {}};
      for (const char* address : addresses[i]) port.addresses.push_back(*parse_interface_address(address));
      macs_.push_back(port.mac);
      own.push_back(port);
      ports.push_back({ports_.back().id(), port, pool_->get()});
      if (i == 0) ports.back().watches = watches_;
      settings_.ports.emplace_back().addresses = port.addresses;
    }
    auto routes = route::read_routes(routes_file_, own, false);
    ASSERT_TRUE(routes.ok()) << routes.error().message();
    layout_ = lay_out_routing(settings_, {runtime::kAnyNode, runtime::kAnyNode}, 1);
    plan_ = *runtime::plan_lcores(*machine::Topology::of_machine(), layout_.requests, {});
    plan_.workers[0].gives_way = true;
    auto router = Router::create(settings_, routing_, layout_, plan_, std::move(ports), *routes);
    ASSERT_TRUE(router.ok()) << router.error().message();
    router_ = *std::move(router);
    lcore_ = std::thread([this] { router_->run(0); });
  }

  void TearDown() override {
    stop();
    std::filesystem::remove(routes_file_);
  }

  /// Ends the lcore, and checks that no packet and no buffer is missing.
  void stop() {
    if (!lcore_.joinable()) return;
    router_->stop();
    lcore_.join();
    std::uint64_t in = 0, out = 0;
    for (const auto& path : router_->paths()) {
      in += path->received.packets.get();
      out += path->sent.packets.get() + path->sent.drops.total();
    }
    for (const auto& lcore : router_->lcores()) {
      in += lcore->counters().generated_packets.get();
      out += lcore->counters().delivered_packets.get();
    }
    EXPECT_EQ(in, out);
    for (int port = 0; port < 2; ++port) (void)drain(port);
    EXPECT_EQ(pool_->in_use(), 0U);
  }

  void write_routes(const std::string& text) const { std::ofstream(routes_file_) << text; }

  port::Port started(std::uint16_t id) {
    port::Port port = *port::Port::adopt(id);
    EXPECT_TRUE(port.configure({}, {.rx = 1, .tx = 1}).ok());
    EXPECT_TRUE(port.attach(pool_->get()).ok());
    EXPECT_TRUE(port.start().ok());
    return port;
  }

  [[nodiscard]] rte_mbuf* mbuf_of(const packet::FrameBytes& bytes) const {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_->get());
    EXPECT_NE(mbuf, nullptr);
    if (mbuf == nullptr) return nullptr;
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(bytes.size())), bytes.data(), bytes.size());
    return mbuf;
  }
  /// A frame from the link of `port`.
  void send(int port, const packet::FrameBytes& bytes) {
    rte_mbuf* mbuf = mbuf_of(bytes);
    ASSERT_NE(mbuf, nullptr);
    while (rte_eth_tx_burst(far_[port].id(), 0, &mbuf, 1) == 0) std::this_thread::yield();
  }

  std::vector<packet::FrameBytes> drain(int port) {
    std::vector<packet::FrameBytes> frames;
    std::array<rte_mbuf*, 64> mbufs;
    while (const std::uint16_t count = rte_eth_rx_burst(far_[port].id(), 0, mbufs.data(), mbufs.size())) {
      for (std::uint16_t i = 0; i < count; ++i) {
        const auto* data = rte_pktmbuf_mtod(mbufs[i], const std::uint8_t*);
        frames.emplace_back(data, data + mbufs[i]->data_len);
        EXPECT_EQ(mbufs[i]->nb_segs, 1);
      }
      rte_pktmbuf_free_bulk(mbufs.data(), count);
    }
    return frames;
  }

  /// The next frame that leaves by `port`.
  packet::FrameBytes next(int port) {
    while (queue_[port].empty()) {
      for (packet::FrameBytes& frame : drain(port)) queue_[port].push_back(std::move(frame));
      std::this_thread::yield();
    }
    packet::FrameBytes frame = std::move(queue_[port].front());
    queue_[port].erase(queue_[port].begin());
    packet::SegmentedFrame whole(frame);
    EXPECT_EQ(packet::verdict_of(whole.ref()), Verdict::forward);
    return frame;
  }

  [[nodiscard]] packet::FrameBytes udp(const IpAddress& from, const IpAddress& to, std::uint8_t ttl = 64,
                                       std::size_t payload = 40, std::uint16_t number = 1) const {
    const packet::UdpFrame header{.destination_mac = macs_[0],
                                  .source_mac = kWest.mac,
                                  .source = from,
                                  .destination = to,
                                  .source_port = 1000,
                                  .destination_port = number,
                                  .time_to_live = ttl};
    packet::FrameBytes frame(packet::udp_headers_length(header) + payload);
    EXPECT_NE(packet::emit(header, frame), 0U);
    return frame;
  }

  /// Answers the router's question for `host`, the next frame on `port`.
  void answer(int port, const Host& host) {
    packet::FrameBytes question = next(port);
    packet::SegmentedFrame frame(question);
    const bool v4 = packet::parse(frame.ref()).l3 == packet::L3Kind::arp;
    ASSERT_TRUE(packet::Responder(host.mac, {v4 ? host.v4 : host.v6, 24}).answer(frame.ref()));
    send(port, frame.bytes());
  }

  [[nodiscard]] packet::FrameBytes echo(const IpAddress& to) const {
    packet::FrameBytes frame = udp(kWest.v4, to);
    frame[14 + packet::Ipv4View::kProtocol] = packet::kProtocolIcmp;
    frame[34] = packet::kIcmpEchoRequest;
    frame[35] = 0;
    return packet::with_checksums(frame);
  }

  [[nodiscard]] std::uint64_t drops(Verdict verdict) const {
    std::uint64_t sum = 0;
    for (const auto& path : router_->paths()) sum += path->sent.drops.get(verdict);
    return sum;
  }
  /// Reads a new route file, and waits until the lcore uses it.
  void reload(const std::string& text) {
    write_routes(text);
    const auto reloaded = router_->reload(routes_file_);
    ASSERT_TRUE(reloaded.ok()) << reloaded.error().message();
    wait_for([&] {
      router_->tend();
      return !router_->switching();
    });
  }
  void wait_for(const std::function<bool()>& condition) const {
    while (!condition()) std::this_thread::yield();
  }
  void expect_dropped(const packet::FrameBytes& frame, Verdict verdict) {
    send(0, frame);
    wait_for([&] { return drops(verdict) == 1; });
  }

  datapath::DatapathSettings settings_;
  RouterSettings routing_;
  std::string routes_file_;
  std::optional<memory::PacketPool> pool_;
  std::vector<port::Port> ports_;
  std::vector<port::Port> far_;
  std::vector<MacAddress> macs_;
  std::array<packet::AddressWatch, 2> watches_;  ///< of the first port's addresses
  datapath::ForwardLayout layout_;
  runtime::LcorePlan plan_;
  std::unique_ptr<Router> router_;
  std::thread lcore_;
  std::vector<packet::FrameBytes> queue_[2];
};

packet::FrameBytes routed(packet::FrameBytes frame, const MacAddress& from, const MacAddress& to, bool v4) {
  packet::store_address(frame.data(), to);
  packet::store_address(frame.data() + 6, from);
  frame[v4 ? 22 : 21] -= 1;
  return v4 ? packet::with_checksums(frame) : frame;
}

TEST_P(RouterTest, PassesOnByGatewaysAndOnLinksOnceItKnowsThem) {
  for (const auto& [from, to, v4] : {std::tuple(kWest.v4, kFarV4, true), std::tuple(kWest.v6, kFarV6, false)}) {
    const packet::FrameBytes first = udp(from, to, 64, 40, 1);
    send(0, first);
    answer(1, kEast);
    EXPECT_EQ(next(1), routed(first, macs_[1], kEast.mac, v4));
    const packet::FrameBytes second = udp(from, to, 2, 1400, 2);
    send(0, second);
    EXPECT_EQ(next(1), routed(second, macs_[1], kEast.mac, v4));
  }
  const packet::FrameBytes on_link = udp(kWest.v4, kEast.v4);
  send(0, on_link);
  EXPECT_EQ(next(1), routed(on_link, macs_[1], kEast.mac, true)) << "the gateway itself";
  EXPECT_EQ(router_->neighbours().count(route::NeighbourState::reachable), 2U);
}

/// No prefix of the port covers the host: a route alone says that it is on the link.
TEST_P(RouterTest, PassesOnToHostsThatARouteHasOnTheLink) {
  reload("192.168.7.0/24 port 1\nfd00:88::/64 port 1\n192.168.8.0/24 via 203.0.113.1 port 1 onlink\n");
  const Host host{{{2, 0, 0, 0, 7, 5}}, *parse_ip("192.168.7.5"), *parse_ip("fd00:88::5")};
  for (const auto& [from, to, v4] : {std::tuple(kWest.v4, host.v4, true), std::tuple(kWest.v6, host.v6, false)}) {
    const packet::FrameBytes packet = udp(from, to);
    send(0, packet);
    answer(1, host);
    EXPECT_EQ(next(1), routed(packet, macs_[1], host.mac, v4)) << to_string(to);
  }
  const Host gateway{{{2, 0, 0, 0, 8, 1}}, *parse_ip("203.0.113.1"), *parse_ip("fd00:88::9")};
  const packet::FrameBytes packet = udp(kWest.v4, *parse_ip("192.168.8.9"));
  send(0, packet);
  answer(1, gateway);
  EXPECT_EQ(next(1), routed(packet, macs_[1], gateway.mac, true));
}

/// However many hosts a scan names, and whatever it costs to pass over them (RFC 6583, 7).
TEST_P(RouterTest, AsksForFewNeighboursDuringAScan) {
  reload("10.64.0.0/10 port 1\n");
  constexpr std::uint32_t kScanned = 5000;
  const auto begin = router_now();
  for (std::uint32_t i = 0; i < kScanned; ++i) {
    const Ipv4Address to{{10, 64, static_cast<std::uint8_t>(i >> 8), static_cast<std::uint8_t>(i)}};
    send(0, udp(kWest.v4, to));
    if (i % 64 == 0) (void)drain(1);
  }
  wait_for([&] {
    (void)drain(1);
    return router_->paths()[0]->received.packets.get() == kScanned;
  });
  const auto most = 512 + (router_now().value - begin.value) / 500'000;
  EXPECT_LE(router_->lcores()[0]->counters().requests.get(), static_cast<std::uint64_t>(most) + 1);
  EXPECT_GE(router_->lcores()[0]->counters().requests.get(), 512U);
  EXPECT_GE(drops(Verdict::neighbour_unresolved) + drops(Verdict::slow_path_full), kScanned - 2 * WaitingRoom::kRoom);
  wait_for([&] {
    (void)drain(0);
    (void)drain(1);
    return router_->paths()[1]->sent.packets.get() + drops(Verdict::tx_full) >=
           router_->lcores()[0]->counters().requests.get();
  });
}

/// RFC 4862, 5.4.3, and RFC 4861, 4.4: its advertisement is one of a router.
TEST_P(RouterTest, DefendsItsAddressAgainstProbesWithoutOptions) {
  packet::FrameBytes probe(route::kNeighbourRequestLength);
  probe.resize(route::write_neighbour_request(probe, kWest.mac, kWest.v6, *parse_ip("fd00:1::1"), std::nullopt));
  probe.resize(probe.size() - 8);
  probe[14 + packet::Ipv6View::kPayloadLength + 1] = 24;
  packet::store_address(probe.data() + 14 + packet::Ipv6View::kSource, Ipv6Address{});
  send(0, packet::with_checksums(probe));
  const packet::FrameBytes reply = next(0);
  ASSERT_EQ(reply.size(), 86U);
  EXPECT_EQ(reply[54], packet::kNeighbourAdvertisement);
  EXPECT_EQ(reply[58], 0xa0) << "router, override";
  EXPECT_EQ(packet::load_address<MacAddress>(reply.data() + 80), macs_[0]);
  EXPECT_EQ(packet::load_address<Ipv6Address>(reply.data() + 38), packet::all_nodes());
}

/// RFC 4861, 7.2.1; RFC 3810.
TEST_P(RouterTest, ReportsItsSolicitedNodeGroup) {
  using packet::operator+;
  const packet::FrameBytes alert{packet::kProtocolIcmpv6, 0, 5, 2, 0, 0, 1, 0};
  const packet::FrameBytes head{130, 0, 0, 0, 0x27, 0x10, 0, 0};
  const packet::FrameBytes all_groups(16);
  packet::FrameBytes query = packet::ipv6_frame(0, alert + head + all_groups + packet::FrameBytes{2, 125, 0, 0}, 1);
  packet::store_address(query.data(), packet::group_mac(packet::all_nodes()));
  packet::store_address(query.data() + 14 + packet::Ipv6View::kSource, std::get<Ipv6Address>(*parse_ip("fe80::7")));
  packet::store_address(query.data() + 14 + packet::Ipv6View::kDestination, packet::all_nodes());
  send(0, packet::with_checksums(query));
  const packet::FrameBytes report = next(0);
  EXPECT_EQ(packet::load_address<Ipv6Address>(report.data() + 38), packet::all_listener_routers());
  EXPECT_EQ(report[62], packet::kListenerReportV2);
  EXPECT_EQ(packet::load_address<Ipv6Address>(report.data() + 74), std::get<Ipv6Address>(*parse_ip("ff02::1:ff00:1")));
  EXPECT_EQ(router_->lcores()[0]->counters().delivered_packets.get(), 1U);
}

/// RFC 5227, 2.4; RFC 4862, 5.4.4.
TEST_P(RouterTest, NotesEachFrameOfAStationThatHasItsAddress) {
  const IpAddress own4 = *parse_ip("10.0.0.1");
  const IpAddress own6 = *parse_ip("fd00:1::1");
  packet::FrameBytes claim(route::kNeighbourRequestLength);
  claim.resize(route::write_neighbour_request(claim, kWest.mac, own4, kWest.v4, std::nullopt));
  expect_dropped(claim, Verdict::no_listener);
  EXPECT_EQ(watches_[0].conflicts(), 1U);
  packet::FrameBytes probe(route::kNeighbourRequestLength);
  probe.resize(route::write_neighbour_request(probe, kEast.mac, kEast.v6, own6, std::nullopt));
  packet::store_address(probe.data() + 14 + packet::Ipv6View::kSource, Ipv6Address{});
  probe[14 + packet::Ipv6View::kHeaderLength + packet::NeighbourView::kHeaderLength] = 14;  // a nonce (RFC 7527)
  packet::SegmentedFrame advertised(packet::with_checksums(probe));
  ASSERT_TRUE(packet::Responder(kWest.mac, {own6, 64}).answer(advertised.ref()));
  send(0, advertised.bytes());
  wait_for([&] { return drops(Verdict::no_listener) == 2; });
  EXPECT_EQ(watches_[1].conflicts(), 1U);
  EXPECT_EQ(watches_[1].other(), kWest.mac);
  EXPECT_EQ(watches_[0].conflicts(), 1U);
}

TEST_P(RouterTest, SaysWhyItDoesNotPassOn) {
  const auto expect_error = [&](const packet::FrameBytes& offender, Verdict verdict, std::uint8_t type,
                                std::uint8_t code) {
    send(0, offender);
    const packet::FrameBytes error = next(0);
    const bool v4 = error.size() < 14 + 40 || packet::EthernetView(error.data()).ether_type() == packet::kEtherTypeIpv4;
    const std::size_t icmp = v4 ? 34 : 54;
    EXPECT_EQ(error[icmp], type) << name(verdict);
    EXPECT_EQ(error[icmp + 1], code) << name(verdict);
    EXPECT_EQ(packet::load_address<MacAddress>(error.data()), kWest.mac);
    EXPECT_TRUE(std::equal(error.begin() + static_cast<std::ptrdiff_t>(icmp) + 8, error.end(), offender.begin() + 14))
        << "the datagram as it came";
    EXPECT_EQ(drops(verdict), 1U + (v4 ? 0 : 1));
  };
  expect_error(udp(kWest.v4, kFarV4, 1), Verdict::ttl_expired, 11, 0);
  expect_error(udp(kWest.v6, kFarV6, 1), Verdict::ttl_expired, 3, 0);
  expect_error(udp(kWest.v4, *parse_ip("192.0.2.1")), Verdict::no_route, 3, 0);
  expect_error(udp(kWest.v6, *parse_ip("2001:db8::1")), Verdict::no_route, 1, 0);
  expect_error(udp(kWest.v4, *parse_ip("10.0.1.1")), Verdict::no_listener, 3, 3);
  expect_error(udp(kWest.v6, *parse_ip("fd00:1::1"), 1), Verdict::no_listener, 1, 4);
  EXPECT_EQ(router_->lcores()[0]->counters().errors.get(), 6U);
}

TEST_P(RouterTest, NamesWhatItDrops) {
  const packet::FrameBytes good = udp(kWest.v4, kFarV4);
  packet::FrameBytes other = good;
  other[5] ^= 1;
  expect_dropped(other, Verdict::other_station);
  expect_dropped(packet::tagged(good, packet::kEtherTypeVlan, 5), Verdict::not_routed);
  expect_dropped(udp(kWest.v4, *parse_ip("127.0.0.1")), Verdict::martian);
  packet::FrameBytes damaged = good;
  damaged[24] ^= 1;
  expect_dropped(damaged, Verdict::ipv4_checksum);
  expect_dropped(packet::FrameBytes(good.begin(), good.begin() + 30), Verdict::ipv4_truncated);
  packet::FrameBytes to_all = good;
  std::fill_n(to_all.begin(), 6, 0xff);
  expect_dropped(to_all, Verdict::no_listener);
  EXPECT_EQ(router_->lcores()[0]->counters().errors.get(), 0U);
}

TEST_P(RouterTest, AnswersForItselfOnEveryPort) {
  for (const char* own : {"10.0.0.1", "10.0.1.1"}) {
    send(0, echo(*parse_ip(own)));
    const packet::FrameBytes reply = next(0);
    EXPECT_EQ(reply[34], packet::kIcmpEchoReply);
    EXPECT_EQ(packet::load_address<MacAddress>(reply.data()), kWest.mac);
  }
  packet::FrameBytes question(route::kNeighbourRequestLength);
  question.resize(route::write_neighbour_request(question, kWest.mac, kWest.v4, *parse_ip("10.0.0.1"), std::nullopt));
  send(0, question);
  EXPECT_EQ(packet::load_address<MacAddress>(next(0).data() + 6), macs_[0]);
  const packet::FrameBytes back = udp(kFarV4, kWest.v4);
  send(0, back);
  EXPECT_EQ(packet::load_address<MacAddress>(next(0).data()), kWest.mac) << "learnt from its question";
}

/// One port's packets for the router take neither the lcore from those that are passed on nor the budgets of others.
/// The rounds are the test's.
TEST_P(RouterTest, LimitsThePacketsPerRoundThatAreNotSimplyPassedOn) {
  stop();
  RouteLcore& lcore = *router_->lcores()[0];
  const auto replies = [&](int port) { return router_->paths()[port]->sent.replies.get(); };
  const auto to_router = [&](std::uint16_t port) {
    lcore.pass_on(port, mbuf_of(echo(*parse_ip("10.0.0.1"))), {.kind = route::HopKind::local}, true);
  };
  const Hop on_link{.port = 0, .kind = route::HopKind::on_link};
  const packet::FrameBytes to_unknown = udp(kFarV4, *parse_ip("10.0.0.77"));
  lcore.begin_round();
  for (std::uint32_t i = 0; i < RouteLcore::kSlowBurst + 10; ++i) to_router(0);
  EXPECT_EQ(replies(0), RouteLcore::kSlowBurst);
  EXPECT_EQ(drops(Verdict::slow_path_full), 10U);
  lcore.pass_on(0, mbuf_of(to_unknown), on_link, true);
  EXPECT_EQ(drops(Verdict::slow_path_full), 11U) << "a packet with an unknown next hop";
  lcore.pass_on(0, mbuf_of(udp(kWest.v4, *parse_ip("192.0.2.1"))), {}, true);
  EXPECT_EQ(drops(Verdict::no_route), 1U);
  EXPECT_EQ(lcore.counters().errors.get(), 0U);

  to_router(1);
  EXPECT_EQ(replies(1), 1U) << "another port has its own budget";
  packet::FrameBytes question(route::kNeighbourRequestLength);
  question.resize(route::write_neighbour_request(question, kWest.mac, kWest.v4, *parse_ip("10.0.0.1"), std::nullopt));
  EXPECT_EQ(lcore.examine(0, mbuf_of(question)), packet::L3Kind::none);
  EXPECT_EQ(replies(0), RouteLcore::kSlowBurst + 1) << "so have ARP and neighbour discovery";
  const std::uint64_t sent = lcore.ports()[0].egress.pushed();
  const auto began = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < 100; ++i) lcore.pass_on(0, mbuf_of(udp(kFarV4, kWest.v4)), on_link, true);
  const auto seconds =
      static_cast<std::uint64_t>((std::chrono::steady_clock::now() - began) / std::chrono::seconds(1) + 1);
  const std::uint64_t pushed = lcore.ports()[0].egress.pushed() - sent;
  EXPECT_GE(pushed, 100U + 1) << "all of them, and a question to their stale next hop";
  EXPECT_LE(pushed, 100U + seconds) << "which is asked again a second later";

  for (int round = 1; round <= 3; ++round) {
    lcore.begin_round();
    for (std::uint32_t i = 0; i < RouteLcore::kSlowPerRound + 5; ++i) to_router(0);
    EXPECT_EQ(replies(0), RouteLcore::kSlowBurst + 1 + static_cast<unsigned>(round) * RouteLcore::kSlowPerRound);
  }
  for (std::uint32_t i = 0; i < 2 * RouteLcore::kSlowBurst + 10; ++i) (void)lcore.examine(0, mbuf_of(question));
  EXPECT_EQ(drops(Verdict::slow_path_full), 11U + 3 * 5 + RouteLcore::kSlowBurst + 10) << "ARP has a limit, too";
  lcore.end();
  for (int port = 0; port < 2; ++port) (void)drain(port);
  EXPECT_EQ(pool_->in_use(), 0U);
}

TEST_P(RouterTest, KeepsAFewPacketsForAnUnknownNeighbour) {
  const std::size_t more = WaitingRoom::kEach + 8;
  for (std::size_t i = 0; i < more; ++i) send(0, udp(kWest.v4, kFarV4, 64, 40, static_cast<std::uint16_t>(i + 1)));
  wait_for([&] { return drops(Verdict::neighbour_unresolved) == more - WaitingRoom::kEach; });
  answer(1, kEast);
  for (std::size_t i = 0; i < WaitingRoom::kEach; ++i) EXPECT_EQ(packet::load_be16(next(1).data() + 36), i + 1);
  send(0, udp(kWest.v4, *parse_ip("10.0.1.55")));
  EXPECT_EQ(packet::EthernetView(next(1).data()).ether_type(), packet::kEtherTypeArp);
  stop();
  EXPECT_EQ(drops(Verdict::neighbour_unresolved), more - WaitingRoom::kEach + 1) << "the one that still waited";
}

/// Whole bursts of plain frames go another way than those with others among them, and a burst's end than its eights.
TEST_P(RouterTest, KeepsTheOrderOfEachFamilyInMixedBursts) {
  for (const IpAddress& to : {kFarV4, kFarV6}) {
    send(0, udp(to == kFarV4 ? kWest.v4 : kWest.v6, to));
    answer(1, kEast);
    (void)next(1);
  }
  constexpr std::uint16_t kPackets = 700;
  std::vector<rte_mbuf*> mbufs;
  std::vector<packet::FrameBytes> expected_v4, expected_v6;
  std::uint64_t damaged = 0;
  for (std::uint16_t i = 1; i <= kPackets; ++i) {
    const bool mixed = i / 100 % 2 == 1;
    const bool v4 = !mixed || i % 3 != 0;
    packet::FrameBytes frame = v4 ? udp(kWest.v4, kFarV4, 64, i % 50U, i) : udp(kWest.v6, kFarV6, 64, i % 50U, i);
    if (mixed && v4 && i % 7 == 0) {
      frame[24] ^= 1;
      ++damaged;
    } else {
      (v4 ? expected_v4 : expected_v6).push_back(routed(frame, macs_[1], kEast.mac, v4));
    }
    ASSERT_NE(mbufs.emplace_back(mbuf_of(frame)), nullptr);
  }
  for (std::size_t sent = 0; sent < mbufs.size();) {
    sent += rte_eth_tx_burst(far_[0].id(), 0, &mbufs[sent], static_cast<std::uint16_t>(mbufs.size() - sent));
  }
  std::vector<packet::FrameBytes> got_v4, got_v6;
  while (got_v4.size() + got_v6.size() < expected_v4.size() + expected_v6.size()) {
    packet::FrameBytes frame = next(1);
    (packet::EthernetView(frame.data()).ether_type() == packet::kEtherTypeIpv4 ? got_v4 : got_v6)
        .push_back(std::move(frame));
  }
  EXPECT_EQ(got_v4, expected_v4);
  EXPECT_EQ(got_v6, expected_v6);
  EXPECT_GT(damaged, 0U);
  wait_for([&] { return drops(Verdict::ipv4_checksum) == damaged; });
}

TEST_P(RouterTest, LosesNothingWhenRoutesAreReadAgain) {
  constexpr std::uint16_t kPackets = 900;  // fewer than a ring holds: the links are not read while tables are made
  send(0, udp(kWest.v4, kFarV4));
  answer(1, kEast);
  (void)next(1);
  std::thread traffic([&] {
    for (std::uint16_t i = 1; i <= kPackets; ++i) send(0, udp(kWest.v4, kFarV4, 64, 40, i));
  });
  std::uint16_t arrived = 0;
  for (int reload = 0; reload < 3; ++reload) {
    write_routes(reload % 2 == 0 ? "10.64.0.0/10 via 10.0.1.9\n" : "0.0.0.0/0 via 10.0.1.9\n10.78.0.0/16 port 0\n");
    const auto reloaded = router_->reload(routes_file_);
    ASSERT_TRUE(reloaded.ok()) << reloaded.error().message();
    for (; arrived < (reload + 1) * kPackets / 3; ++arrived)
      EXPECT_EQ(packet::load_be16(next(1).data() + 36), arrived + 1);
    router_->tend();
  }
  traffic.join();
  wait_for([&] {
    router_->tend();
    return !router_->switching();
  });
  EXPECT_EQ(arrived, kPackets);
  write_routes("10.77.0.0/16 via 10.0.1.9\n10.78.0.0/16 via 192.0.2.1\n");
  EXPECT_FALSE(router_->reload(routes_file_).ok());
  EXPECT_EQ(router_->routes(), 1U);
  send(0, udp(kWest.v4, kFarV4));
  (void)next(1);
  EXPECT_EQ(router_->reloads(), 3U);
  EXPECT_EQ(router_->refused_reloads(), 1U);
}

/// Bytes of memory that the process has touched.
std::uint64_t resident() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t pages = 0;
  file >> size >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Tables in force and one set beside them, however often routes are read: new ones are made of the old ones' memory.
TEST_P(RouterTest, DoesNotGrowWhenRoutesAreReadAgain) {
  if (GetParam() == LookupKind::fib) return;  // rte_fib cannot be emptied: three sets at most
  const auto routes = [](int last) { return "10.77.0." + std::to_string(last) + "/32 via 10.0.1.9\n"; };
  reload(routes(1));
  const std::uint64_t before = resident();
  for (int i = 2; i < 7; ++i) reload(routes(i));
  EXPECT_LT(resident(), before + (std::uint64_t{1} << 24)) << "a set has 64 MiB";
  const packet::FrameBytes packet = udp(kWest.v4, *parse_ip("10.77.0.6"));
  send(0, packet);
  answer(1, kEast);
  EXPECT_EQ(next(1), routed(packet, macs_[1], kEast.mac, true));
  send(0, udp(kWest.v4, *parse_ip("10.77.0.5")));
  wait_for([&] { return drops(Verdict::no_route) == 1; });
}

/// A worker that does not get on: not a third set of tables is made.
TEST_P(RouterTest, RefusesRoutesWhileAWorkerStillReadsTheOldOnes) {
  stop();
  write_routes("10.78.0.0/16 via 10.0.1.9\n");
  EXPECT_TRUE(router_->reload(routes_file_).ok());
  EXPECT_TRUE(router_->switching());
  const Result<void> refused = router_->reload(routes_file_, std::chrono::milliseconds(0));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("a worker still uses"), std::string::npos) << refused.error().message();
  EXPECT_EQ(router_->refused_reloads(), 1U);
}

std::string lookup_name(const testing::TestParamInfo<LookupKind>& info) {
  constexpr const char* kNames[] = {"Lpm", "Fib", "Exact"};
  return kNames[static_cast<std::size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Lookups, RouterTest, testing::Values(LookupKind::lpm, LookupKind::fib, LookupKind::exact),
                         lookup_name);

}  // namespace
}  // namespace warpline::router
