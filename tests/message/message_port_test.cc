// SPDX-License-Identifier: Apache-2.0
// Datagrams from one port to another: resolved, built in place, gathered, steered, verified, and every buffer given
// back.
#include "warpline/transport/ethdev/message_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <rte_ethdev.h>
#include <rte_malloc.h>

#include "warpline/port/ring_pair.h"
#include "warpline/port/vnic.h"
#include "warpline/runtime/eal_environment.h"

namespace warpline {
namespace {

const auto* const kEal = testing::AddGlobalTestEnvironment(new runtime::EalEnvironment(1));

enum class Wire { vnic, rings };

struct Case {
  std::string name;
  Wire wire = Wire::vnic;
  bool v6 = false;
  bool checksum = true;
  std::optional<std::uint16_t> vlan = std::nullopt;
  std::uint16_t workers = 1;
  std::string arguments = "";  ///< of the software NICs
  std::uint16_t mtu = 1500;
};

struct Arrived {
  std::vector<std::uint8_t> bytes;
  message::PeerAddress from;
  std::uint8_t ecn = 0;
};

InterfaceAddress address(bool v6, std::uint8_t host) {
  if (v6) return {Ipv6Address{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host}}, 64};
  return {Ipv4Address{{10, 0, 0, host}}, 24};
}

std::vector<std::uint8_t> made(std::size_t i, std::size_t length) {
  std::vector<std::uint8_t> bytes(length);
  for (std::size_t b = 0; b < length; ++b) bytes[b] = static_cast<std::uint8_t>(i * 29 + b * 11);
  return bytes;
}

class Ports : public testing::TestWithParam<Case> {
 protected:
  static constexpr std::uint16_t kServerPort = 7000;
  static constexpr std::uint16_t kClientPort = 50'000;

  void SetUp() override {
    const Case& c = GetParam();
    if (c.wire == Wire::vnic && port::vnic_calls() == nullptr) GTEST_SKIP() << "built without net_vnic";
    std::optional<std::uint16_t> ids[2];
    if (c.wire == Wire::rings) {
      const auto pair = *port::make_ring_pair(c.workers, 512, runtime::kAnyNode);
      ids[0] = pair.first;
      ids[1] = pair.second;
    }
    for (int side = 0; side < 2; ++side) {
      port::PortSettings port;
      port.spec = "net_vnic" + std::to_string(side) + ",wire=net_vnic" + std::to_string(1 - side) + c.arguments;
      port.rx_ring = port.tx_ring = 256;
      port.mtu = c.mtu;
      port.addresses = {address(c.v6, static_cast<std::uint8_t>(side + 1))};
      transport::MessagePortConfig config;
      config.workers = c.workers;
      config.udp_port = side == 0 ? kClientPort : kServerPort;
      config.own_ports = side == 0;
      config.vlan = c.vlan;
      config.max_sessions = 16;
      config.udp_checksum = c.checksum;
      config.pool.cache = 32;
      auto opened = transport::MessagePort::open(port, config, ids[side]);
      ASSERT_TRUE(opened.ok()) << opened.error().message();
      ports_.push_back(std::move(opened).value());
    }
  }

  void TearDown() override {
    // A peer may hold what the other sent: both close before either is judged.
    for (const auto& port : ports_) port->close();
    for (const auto& port : ports_) EXPECT_EQ(port->leaked(), 0U);
  }

  [[nodiscard]] message::PeerAddress peer(int side, std::uint16_t port) const {
    return message::peer_address(address(GetParam().v6, static_cast<std::uint8_t>(side + 1)).address, port);
  }

  void poll(int side, std::uint16_t worker) {
    for (const message::Datagram& datagram : ports_[side]->queue(worker).receive(now_)) {
      std::vector<std::uint8_t> bytes(datagram.head, datagram.head + datagram.head_length);
      EXPECT_GE(datagram.head_length,
                std::min<std::uint32_t>(message::kMaxHeadBytes, datagram.head_length + datagram.rest_length));
      bytes.insert(bytes.end(), datagram.rest, datagram.rest + datagram.rest_length);
      arrived_[side][worker].push_back({std::move(bytes), datagram.from, datagram.ecn});
    }
    for (const std::uint64_t token : ports_[side]->queue(worker).completed()) tokens_.push_back(token);
  }

  void poll_all() {
    now_.value += 1000;
    for (int side = 0; side < 2; ++side) {
      for (std::uint16_t worker = 0; worker < GetParam().workers; ++worker) poll(side, worker);
    }
  }

  /// Sends one datagram, the first `in_head` bytes in its head. `bytes` stays until its token comes.
  void send(int side, std::uint16_t worker, const std::vector<std::uint8_t>& bytes, std::size_t in_head,
            const message::PeerAddress& to, std::uint64_t token, bool ecn = false) {
    transport::MessageQueue& queue = ports_[side]->queue(worker);
    std::span<message::Outgoing> room = queue.room();
    for (int i = 0; room.empty() && i < 1000; ++i) {
      poll_all();
      room = queue.room();
    }
    ASSERT_FALSE(room.empty());
    message::Outgoing& out = room[0];
    const auto head = static_cast<std::uint32_t>(std::min(in_head, bytes.size()));
    std::memcpy(out.head, bytes.data(), head);
    out.head_length = head;
    out.payload = bytes.data() + head;
    out.payload_length = static_cast<std::uint32_t>(bytes.size()) - head;
    out.token = out.payload_length == 0 ? 0 : token;
    out.session = 3;
    out.payload_device = false;
    out.ecn_capable = ecn;
    out.to = to;
    queue.send(1, now_);
  }

  /// The first datagram to a neighbour is lost while that is asked for.
  void resolve(int side, std::uint16_t worker, const message::PeerAddress& to) {
    const std::vector<std::uint8_t> nothing(4);
    send(side, worker, nothing, 64, to, 0);
    for (int i = 0; i < 50; ++i) poll_all();
  }

  std::vector<std::unique_ptr<transport::MessagePort>> ports_;
  std::map<int, std::map<std::uint16_t, std::vector<Arrived>>> arrived_;
  std::vector<std::uint64_t> tokens_;
  Nanos now_{1};
};

TEST_P(Ports, ResolveThenCarryEveryByteBothWays) {
  const Case& c = GetParam();
  const std::uint16_t last = static_cast<std::uint16_t>(c.workers - 1);
  resolve(0, last, peer(1, kServerPort));
  EXPECT_EQ(ports_[0]->queue(last).counters().unresolved.get(), 1U);
  std::size_t answered = 0;
  for (std::uint16_t w = 0; w < c.workers; ++w) answered += ports_[1]->queue(w).counters().answered.get();
  EXPECT_EQ(answered, 1U);

  const std::size_t most = c.mtu - (c.v6 ? 48 : 28);
  std::vector<std::vector<std::uint8_t>> sent;
  for (const std::size_t length : {1UL, 17UL, 18UL, 19UL, 200UL, 256UL, 257UL, 300UL, 1000UL, most - 1, most}) {
    sent.push_back(made(sent.size(), length));
  }
  std::vector<std::uint64_t> wanted;
  for (int round = 0; round < 100; ++round) {
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const std::uint64_t token = wanted.size() + 1;
      if (sent[i].size() > 64) wanted.push_back(token);
      send(0, last, sent[i], 64, peer(1, kServerPort), token, round % 2 == 1);
      poll_all();
    }
  }
  for (int i = 0; i < 300; ++i) poll_all();
  std::vector<Arrived> there;
  for (auto& [worker, some] : arrived_[1]) there.insert(there.end(), some.begin(), some.end());
  ASSERT_EQ(there.size(), 100 * sent.size());
  for (std::size_t i = 0; i < there.size(); ++i) {
    ASSERT_EQ(there[i].bytes, sent[i % sent.size()]) << i;
    ASSERT_EQ(there[i].from, peer(0, static_cast<std::uint16_t>(kClientPort + last)));
    ASSERT_EQ(there[i].ecn, i / sent.size() % 2 == 1 ? 2 : 0);
  }

  // The far side has learned the way back from the question, and any of its workers may answer.
  const std::uint16_t answering = arrived_[1].begin()->first;
  send(1, answering, sent[7], 64, there[0].from, 1'000'000);
  for (int i = 0; i < 50; ++i) poll_all();
  ASSERT_EQ(arrived_[0][last].size(), 1U);
  EXPECT_EQ(arrived_[0][last][0].bytes, sent[7]);
  EXPECT_EQ(arrived_[0][last][0].from, peer(1, kServerPort));

  // Drivers give sent buffers back when they need room, or at the end. Each token comes at most once.
  std::vector<std::uint64_t> seen = tokens_;
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
  for (const std::uint64_t token : seen) EXPECT_TRUE(token <= wanted.size() || token == 1'000'000);
  EXPECT_GE(seen.size() + 2 * 256, wanted.size());
}

TEST_P(Ports, WhatIsNotForThemIsCountedAndAnsweredNothing) {
  resolve(0, 0, peer(1, kServerPort));
  const auto strangers = [&] {
    std::uint64_t all = 0;
    for (std::uint16_t w = 0; w < GetParam().workers; ++w) all += ports_[1]->queue(w).counters().strangers.get();
    return all;
  };
  const std::uint64_t before = strangers();
  send(0, 0, made(0, 100), 100, peer(1, kServerPort - 1), 0);  // another port
  for (int i = 0; i < 50; ++i) poll_all();
  EXPECT_EQ(strangers(), before + 1);
  EXPECT_TRUE(arrived_[1].empty() || std::ranges::all_of(arrived_[1], [](const auto& w) { return w.second.empty(); }));
  const std::vector<std::uint8_t> kept = made(1, 600);
  message::PeerAddress nowhere = peer(1, kServerPort);
  nowhere.ip[12] ^= 0x40;
  nowhere.ip[1] ^= 0x40;  // another network, or no IPv4 any more
  send(0, 0, kept, 64, nowhere, 77);
  poll_all();
  EXPECT_EQ(ports_[0]->queue(0).counters().refused.get(), 1U);
  EXPECT_EQ(tokens_, std::vector<std::uint64_t>{77});
}

/// RFC 5227, 2.3: an ARP request whose sender and target are the address, twice, 2 s apart. RFC 3810, 6.1 and 5.2.14:
/// a report to ff02::16, repeated.
TEST_P(Ports, TheirAddressesAreAnnouncedWithoutTheirUser) {
  const auto look = [](std::uint16_t, std::uint16_t, rte_mbuf** mbufs, std::uint16_t count, std::uint16_t,
                       void* found) {
    for (std::uint16_t i = 0; i < count; ++i) {
      const auto* const frame = rte_pktmbuf_mtod(mbufs[i], const std::uint8_t*);
      const std::size_t tag = frame[12] == 0x81 && frame[13] == 0 ? 4 : 0;
      const bool arp = frame[12 + tag] == 8 && frame[13 + tag] == 6;
      constexpr std::uint8_t kReporters[] = {0x33, 0x33, 0, 0, 0, 0x16};
      const bool announces = arp ? std::memcmp(frame + tag + 28, frame + tag + 38, 4) == 0
                                 : std::memcmp(frame, kReporters, sizeof kReporters) == 0;
      *static_cast<unsigned*>(found) += announces ? 1 : 0;
    }
    return count;
  };
  unsigned found = 0;
  const std::uint16_t id = ports_[0]->port().id();
  std::vector<const rte_eth_rxtx_callback*> looks;
  for (std::uint16_t w = 0; w < GetParam().workers; ++w) looks.push_back(rte_eth_add_rx_callback(id, w, look, &found));
  const auto arrived_at = [&](std::int64_t seconds) {
    EXPECT_TRUE(ports_[1]->tend({seconds * 1'000'000'000}).empty()) << "nobody else has the address";
    for (int i = 0; i < 50; ++i) poll_all();
    return found;
  };
  for (int i = 0; i < 50; ++i) poll_all();
  const unsigned first = found;
  // By open(); rings have no MAC address to announce.
  EXPECT_EQ(first != 0, GetParam().wire == Wire::vnic);
  EXPECT_EQ(arrived_at(5), first);
  EXPECT_EQ(arrived_at(7), 2 * first);
  EXPECT_EQ(arrived_at(60), 2 * first);
  for (std::uint16_t w = 0; w < GetParam().workers; ++w) {
    EXPECT_EQ(rte_eth_remove_rx_callback(id, w, looks[w]), 0);
    rte_free(const_cast<rte_eth_rxtx_callback*>(looks[w]));
  }
}

/// Drivers may look at the first packet before the count: net_memif of DPDK 24.11 does.
TEST_P(Ports, NoDriverIsAskedToSendNothing) {
  const auto look = [](std::uint16_t, std::uint16_t, rte_mbuf**, std::uint16_t count, void* smallest) {
    auto& least = *static_cast<std::uint16_t*>(smallest);
    least = std::min(least, count);
    return count;
  };
  std::uint16_t least = UINT16_MAX;
  const std::uint16_t id = ports_[0]->port().id();
  const rte_eth_rxtx_callback* const looks = rte_eth_add_tx_callback(id, 0, look, &least);
  ASSERT_NE(looks, nullptr);
  resolve(0, 0, peer(1, kServerPort));  // the only packet has no path yet
  EXPECT_EQ(rte_eth_remove_tx_callback(id, 0, looks), 0);
  rte_free(const_cast<rte_eth_rxtx_callback*>(looks));
  EXPECT_EQ(least, 1);
}

/// Nobody here looks at links.
std::vector<Case> as_other_nics() {
  std::vector<Case> cases;
  for (const char* const persona :
       {"mlx5", "ice", "i40e", "ixgbe", "iavf", "ena", "bnxt", "virtio", "vmxnet3", "gve"}) {
    Case one{.name = persona, .workers = 4};
    one.arguments = ",link_up_after=0,persona=" + one.name;
    if (one.name == "gve") one.mtu = 1460;
    cases.push_back(one);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Personas, Ports, testing::ValuesIn(as_other_nics()),
                         [](const auto& c) { return c.param.name; });

INSTANTIATE_TEST_SUITE_P(Wires, Ports,
                         testing::Values(Case{"vnic"}, Case{.name = "vnic_ipv6", .v6 = true},
                                         Case{.name = "vnic_rounds", .workers = 3, .arguments = ",rx_align=32"},
                                         Case{.name = "vnic_vlan", .vlan = 42},
                                         Case{.name = "vnic_no_checksum", .checksum = false},
                                         Case{.name = "vnic_workers", .workers = 3},
                                         Case{.name = "rings", .wire = Wire::rings},
                                         Case{.name = "rings_ipv6", .wire = Wire::rings, .v6 = true},
                                         Case{.name = "rings_workers", .wire = Wire::rings, .workers = 3}),
                         [](const auto& c) { return c.param.name; });

TEST(Link, HasRoomForAsManyNeighboursAsSessions) {
  constexpr std::uint32_t kMany = 8192;
  transport::MessageLink link({{2, 0, 0, 0, 0, 1}}, 1500, {{Ipv4Address{{10, 0, 0, 1}}, 8}}, {}, {}, kMany);
  const auto peer = [](std::uint32_t number) {
    return message::peer_address(
        Ipv4Address{{10, 1, static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)}}, 7000);
  };
  const Nanos now{1'000'000'000};
  std::uint32_t resolved = 0;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    const auto next = link.next_hop(peer(i));
    ASSERT_TRUE(next);
    if (link.neighbours.find_or_add(*next, now) == route::NeighbourTable::kNobody) continue;
    resolved += link.neighbours.learn(*next, {.mac = {{2, 0, 0, 0, 0, 2}}, .answers = true}, now) ? 1 : 0;
  }
  EXPECT_GE(resolved, kMany - 2) << "but for a bucket that is full, once in some hundred runs";
}

TEST(Steering, EveryDatagramHasOneOwnerOrNone) {
  const transport::MessageSteering own{.first_port = 65'530, .workers = 4, .own_ports = true};
  EXPECT_EQ(own.owner(0, 65'533, {}), 3);
  EXPECT_EQ(own.owner(0, 65'534, {}), 4);
  EXPECT_EQ(own.owner(0, 65'529, {}), 4);
  const transport::MessageSteering device{.first_port = 7000, .workers = 4, .own_ports = false, .by_device = true};
  EXPECT_EQ(device.owner(2, 7000, {}), 2);
  EXPECT_EQ(device.owner(2, 7001, {}), 4);
  const transport::MessageSteering shared{.first_port = 7000, .workers = 4, .own_ports = false, .by_device = false};
  std::map<std::uint16_t, int> flows;
  for (std::uint16_t port = 1; port <= 4000; ++port) {
    const message::PeerAddress from{.ip = {10}, .port = port};
    const std::uint16_t owner = shared.owner(0, 7000, from);
    EXPECT_EQ(owner, shared.owner(3, 7000, from));
    ++flows[owner];
  }
  ASSERT_EQ(flows.size(), 4U);
  for (const auto& [owner, count] : flows) EXPECT_GT(count, 800) << owner;
}

TEST(Steering, ASessionStaysWithItsEndpointWhereverItsPeerIs) {
  for (const bool by_device : {false, true}) {
    const transport::MessageSteering steering{
        .first_port = 7000, .workers = 4, .own_ports = false, .by_device = by_device};
    for (std::uint16_t port = 1; port <= 100; ++port) {
      const message::PeerAddress from{.ip = {10}, .port = port};
      for (std::uint16_t endpoint = 0; endpoint < 4; ++endpoint) {
        EXPECT_EQ(steering.owner(2, 7000, from, endpoint), endpoint);
      }
      EXPECT_EQ(steering.owner(2, 7000, from, 4), steering.owner(2, 7000, from)) << "there is none";
      EXPECT_EQ(steering.owner(2, 7001, from, 1), 4) << "another port";
    }
  }
  const transport::MessageSteering own{.first_port = 7000, .workers = 4, .own_ports = true};
  EXPECT_EQ(own.owner(0, 7002, {}, 1), 2);
}

}  // namespace
}  // namespace warpline
