// SPDX-License-Identifier: Apache-2.0
// Checksums both ways, packet types, RSS and timestamps.

#include <gtest/gtest.h>

#include <map>

#include <rte_mbuf_dyn.h>

#include "port.h"
#include "warpline/packet/udp_frame.h"

namespace warpline::vnic {
namespace {

constexpr std::uint64_t kTxSums =
    RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
constexpr std::uint64_t kRxSums =
    RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM;

PortSetup with_offloads(const Pool& pool, std::uint64_t rx, std::uint64_t tx) {
  PortSetup setup;
  setup.pool = pool.get();
  setup.conf.rxmode.offloads = rx;
  setup.conf.txmode.offloads = tx;
  return setup;
}

struct SumCase {
  packet::FrameBytes frame;  ///< its checksum fields hold anything
  std::uint64_t flags;
  std::uint16_t l3_length;
};

std::vector<SumCase> sum_cases() {
  constexpr std::uint64_t kIp4 = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
  std::vector<SumCase> cases;
  for (const std::size_t length : {0UL, 1UL, 17UL, 1000UL}) {
    const packet::FrameBytes data = packet::counting(length, 3);
    cases.push_back(
        {packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(data)), kIp4 | RTE_MBUF_F_TX_UDP_CKSUM, 20});
    cases.push_back(
        {packet::ipv4_frame(packet::kProtocolTcp, packet::tcp_segment(data)), kIp4 | RTE_MBUF_F_TX_TCP_CKSUM, 20});
    cases.push_back({packet::ipv4_frame(packet::kProtocolTcp, packet::tcp_segment(data), {}, {1, 1, 1, 1}),
                     kIp4 | RTE_MBUF_F_TX_TCP_CKSUM, 24});
    cases.push_back({packet::ipv6_frame(packet::kProtocolUdp, packet::udp_datagram(data)),
                     RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_UDP_CKSUM, 40});
    cases.push_back({packet::ipv6_frame(packet::kProtocolTcp, packet::tcp_segment(data)),
                     RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_TCP_CKSUM, 40});
  }
  return cases;
}

TEST(TxChecksums, AreFilledIn) {
  const Pool pool;
  Port port("net_vnic0");
  port.bring_up(with_offloads(pool, 0, kTxSums | RTE_ETH_TX_OFFLOAD_MULTI_SEGS));
  for (const SumCase& c : sum_cases()) {
    for (const std::vector<std::uint32_t>& lengths : {std::vector<std::uint32_t>{}, {80}}) {
      rte_mbuf* mbuf = pool.chain(c.frame, lengths);
      mbuf->l2_len = 14;
      mbuf->l3_len = c.l3_length;
      mbuf->ol_flags |= c.flags;
      ASSERT_EQ(rte_eth_tx_prepare(port.id(), 0, &mbuf, 1), 1) << rte_strerror(rte_errno);
      ASSERT_EQ(port.send(&mbuf, 1), 1);
      EXPECT_EQ(port.receive_all(), Frames{packet::with_checksums(c.frame)});
    }
  }
}

TEST(TxChecksums, PreparationRefusesWhatTheDeviceHasNot) {
  const Pool pool;
  Port port("net_vnic0");
  port.bring_up(with_offloads(pool, 0, kTxSums));
  rte_mbuf* mbuf = pool.chain(numbered(1));
  for (const std::uint64_t flags : {std::uint64_t{RTE_MBUF_F_TX_TCP_SEG}, std::uint64_t{RTE_MBUF_F_TX_VLAN},
                                    std::uint64_t{RTE_MBUF_F_TX_SCTP_CKSUM}}) {
    mbuf->ol_flags = flags;
    EXPECT_EQ(rte_eth_tx_prepare(port.id(), 0, &mbuf, 1), 0);
    EXPECT_EQ(rte_errno, ENOTSUP);
  }
  rte_pktmbuf_free(mbuf);
}

TEST(TxChecksums, OfFramesWithoutThoseHeadersAreMalformed) {
  const Pool pool;
  Port port("net_vnic0");
  port.bring_up(with_offloads(pool, 0, kTxSums));
  rte_mbuf* mbuf = pool.chain(packet::counting(60));
  mbuf->l2_len = 127;
  mbuf->l3_len = 511;
  mbuf->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM;
  ASSERT_EQ(port.send(&mbuf, 1), 1);
  EXPECT_EQ(port.receive_all().size(), 0U);
  EXPECT_EQ(port.count(Count::tx_malformed), 1U);
}

std::uint64_t sum_flags(const rte_mbuf* mbuf) {
  return mbuf->ol_flags & (RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK);
}

TEST(RxChecksums, AreVerifiedWhereAskedFor) {
  const Pool pool;
  Port port("net_vnic0");
  port.bring_up(with_offloads(pool, kRxSums, 0));
  const auto flags_of = [&](const packet::FrameBytes& frame) {
    port.send(pool, frame);
    rte_mbuf* const mbuf = port.receive_one();
    if (mbuf == nullptr) return ~std::uint64_t{0};
    const std::uint64_t flags = sum_flags(mbuf);
    rte_pktmbuf_free(mbuf);
    return flags;
  };
  constexpr std::uint64_t kGood4 = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
  const packet::FrameBytes good =
      packet::with_checksums(packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(30))));
  EXPECT_EQ(flags_of(good), kGood4);
  EXPECT_EQ(flags_of(packet::with_checksums(
                packet::ipv4_frame(packet::kProtocolTcp, packet::tcp_segment(packet::counting(31))))),
            kGood4);
  EXPECT_EQ(flags_of(packet::with_checksums(
                packet::ipv6_frame(packet::kProtocolTcp, packet::tcp_segment(packet::counting(31))))),
            std::uint64_t{RTE_MBUF_F_RX_L4_CKSUM_GOOD});
  packet::FrameBytes bad = good;
  bad.back() ^= 1;
  EXPECT_EQ(flags_of(bad), RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_BAD);
  EXPECT_EQ(port.count(Count::rx_bad_l4_checksum), 1U);
  bad = good;
  bad[14 + 8] ^= 1;
  EXPECT_NE(flags_of(bad) & RTE_MBUF_F_RX_IP_CKSUM_BAD, 0U);
  EXPECT_EQ(port.count(Count::rx_bad_ip_checksum), 1U);
  EXPECT_EQ(flags_of(packet::ethernet_frame(0x88b5, packet::counting(46))), 0U);
}

TEST(RxChecksums, AreNotLookedAtOtherwise) {
  const Pool pool;
  Port port("net_vnic0");
  port.bring_up(with_offloads(pool, 0, 0));
  port.send(pool, packet::with_checksums(
                      packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(30)))));
  rte_mbuf* const mbuf = port.receive_one();
  ASSERT_NE(mbuf, nullptr);
  EXPECT_EQ(sum_flags(mbuf), 0U);
  rte_pktmbuf_free(mbuf);
}

packet::FrameBytes flow_frame(std::uint16_t port) {
  packet::FrameBytes frame(80);
  packet::UdpFrame header;
  header.destination_mac = packet::kTestDestinationMac;
  header.source_mac = packet::kTestSourceMac;
  header.source = packet::kTestSourceV4;
  header.destination = packet::kTestDestinationV4;
  header.source_port = port;
  header.destination_port = 9;
  EXPECT_NE(packet::emit(header, frame), 0U);
  return frame;
}

struct RssPort {
  explicit RssPort(std::uint16_t queues) {
    PortSetup setup;
    setup.pool = pool.get();
    setup.rx_queues = queues;
    setup.rx_ring = 128;
    setup.conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    setup.conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_RSS_HASH;
    setup.conf.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP;
    port.bring_up(setup);
  }
  /// Queue and hash of each flow.
  std::map<std::uint16_t, std::pair<std::uint16_t, std::uint32_t>> steer(std::uint16_t flows) {
    std::map<std::uint16_t, std::pair<std::uint16_t, std::uint32_t>> where;
    for (std::uint16_t flow = 0; flow < flows; ++flow) {
      port.send(pool, flow_frame(static_cast<std::uint16_t>(1000 + flow)));
      for (std::uint16_t queue = 0; queue < port.device().rx_queues; ++queue) {
        rte_mbuf* const mbuf = port.receive_one(queue);
        if (mbuf == nullptr) continue;
        EXPECT_NE(mbuf->ol_flags & RTE_MBUF_F_RX_RSS_HASH, 0U);
        EXPECT_TRUE(where.emplace(flow, std::pair{queue, mbuf->hash.rss}).second);
        rte_pktmbuf_free(mbuf);
      }
    }
    EXPECT_EQ(where.size(), flows);
    return where;
  }

  Pool pool{8191};
  Port port{"net_vnic0"};
};

TEST(RssSteering, SpreadsFlowsAndKeepsThemTogether) {
  RssPort rss(4);
  const auto first = rss.steer(400);
  std::map<std::uint16_t, int> load;
  for (const auto& [flow, where] : first) {
    ++load[where.first];
    EXPECT_EQ(where.first, where.second % 512 % 4) << "the table as it is at first";
  }
  ASSERT_EQ(load.size(), 4U);
  for (const auto& [queue, flows] : load) EXPECT_GT(flows, 50) << queue;
  EXPECT_EQ(rss.steer(400), first);
}

TEST(RssSteering, FollowsTheTable) {
  RssPort rss(4);
  rte_eth_rss_reta_entry64 reta[8]{};
  for (unsigned i = 0; i < 512; ++i) {
    reta[i / 64].mask = ~std::uint64_t{0};
    reta[i / 64].reta[i % 64] = static_cast<std::uint16_t>(i < 256 ? 1 : 3);
  }
  ASSERT_EQ(rte_eth_dev_rss_reta_update(rss.port.id(), reta, 512), 0);
  for (const auto& [flow, where] : rss.steer(200)) EXPECT_EQ(where.first, where.second % 512 < 256 ? 1 : 3);
  rte_eth_rss_reta_entry64 read[8]{};
  for (auto& group : read) group.mask = ~std::uint64_t{0};
  ASSERT_EQ(rte_eth_dev_rss_reta_query(rss.port.id(), read, 512), 0);
  EXPECT_EQ(read[0].reta[0], 1);
  EXPECT_EQ(read[7].reta[63], 3);
  const QuietLog quiet;
  reta[0].reta[0] = 4;
  EXPECT_EQ(rte_eth_dev_rss_reta_update(rss.port.id(), reta, 512), -EINVAL) << "there is no such queue";
  EXPECT_LT(rte_eth_dev_rss_reta_update(rss.port.id(), reta, 128), 0);
}

TEST(RssSteering, FollowsTheKeyAndTheFields) {
  RssPort rss(4);
  const auto before = rss.steer(50);
  std::uint8_t key[40];
  for (unsigned i = 0; i < sizeof key; ++i) key[i] = static_cast<std::uint8_t>(17 * i + 1);
  rte_eth_rss_conf conf{};
  conf.rss_key = key;
  conf.rss_key_len = sizeof key;
  conf.rss_hf = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP;
  ASSERT_EQ(rte_eth_dev_rss_hash_update(rss.port.id(), &conf), 0);
  EXPECT_NE(rss.steer(50), before);
  std::uint8_t read[40]{};
  conf.rss_key = read;
  ASSERT_EQ(rte_eth_dev_rss_hash_conf_get(rss.port.id(), &conf), 0);
  EXPECT_TRUE(std::equal(std::begin(key), std::end(key), std::begin(read)));
  conf.rss_key = nullptr;
  conf.rss_hf = RTE_ETH_RSS_IPV4;
  ASSERT_EQ(rte_eth_dev_rss_hash_update(rss.port.id(), &conf), 0);
  const auto addresses = rss.steer(50);
  for (const auto& [flow, where] : addresses) EXPECT_EQ(where, addresses.at(0)) << "they differ in their ports only";
}

TEST(PacketTypes, TellWhatIsInside) {
  const Pool pool;
  Port port("net_vnic0");
  port.bring_up(with_offloads(pool, kRxSums, 0));
  const auto type_of = [&](const packet::FrameBytes& frame) {
    port.send(pool, frame);
    rte_mbuf* const mbuf = port.receive_one();
    if (mbuf == nullptr) return 0U;
    const std::uint32_t type = mbuf->packet_type;
    rte_pktmbuf_free(mbuf);
    return type;
  };
  EXPECT_EQ(type_of(numbered(1)), std::uint32_t{RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4_EXT_UNKNOWN | RTE_PTYPE_L4_UDP});
  EXPECT_EQ(type_of(packet::ipv6_frame(packet::kProtocolTcp, packet::tcp_segment(packet::counting(10)))),
            std::uint32_t{RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV6_EXT_UNKNOWN | RTE_PTYPE_L4_TCP});
  EXPECT_EQ(type_of(packet::tagged(numbered(1), packet::kEtherTypeVlan, 7)),
            std::uint32_t{RTE_PTYPE_L2_ETHER_VLAN | RTE_PTYPE_L3_IPV4_EXT_UNKNOWN | RTE_PTYPE_L4_UDP});
}

TEST(Timestamps, AreTheDevicesClockAtArrival) {
  const Pool pool;
  Port port("net_vnic0", "delay=50us");
  port.bring_up(with_offloads(pool, RTE_ETH_RX_OFFLOAD_TIMESTAMP, 0));
  const int offset = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, nullptr);
  const int flag = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, nullptr);
  ASSERT_GE(offset, 0);
  ASSERT_GE(flag, 0);
  std::uint64_t last = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {
    std::uint64_t before = 0;
    std::uint64_t after = 0;
    ASSERT_EQ(rte_eth_read_clock(port.id(), &before), 0);
    port.send(pool, numbered(i));
    rte_mbuf* mbuf = nullptr;
    while (mbuf == nullptr) mbuf = port.receive_one();
    ASSERT_EQ(rte_eth_read_clock(port.id(), &after), 0);
    const std::uint64_t stamp = *RTE_MBUF_DYNFIELD(mbuf, offset, rte_mbuf_timestamp_t*);
    EXPECT_NE(mbuf->ol_flags & std::uint64_t{1} << flag, 0U);
    EXPECT_GE(stamp, before + 50'000);
    EXPECT_LE(stamp, after);
    EXPECT_GE(stamp, last);
    last = stamp;
    rte_pktmbuf_free(mbuf);
  }
}

}  // namespace
}  // namespace warpline::vnic
