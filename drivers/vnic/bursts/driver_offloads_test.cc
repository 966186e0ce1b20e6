// SPDX-License-Identifier: Apache-2.0
// Offloads as an application meets them: through ethdev, on UDP frames that go round a loopback.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <vector>

#include <rte_ethdev.h>
#include <rte_flow.h>

#include "vnic/api/driver_testing.h"
#include "vnic/common/offloads.h"
#include "vnic/engine/engine_testing.h"
#include "warpline/packet/udp_frame.h"
#include "warpline/packet/verify.h"

namespace warpline::vnic {
namespace {

constexpr std::uint32_t kHeaders = 42;

Bytes udp_frame(std::size_t length, std::uint16_t source_port = 1000) {
  Bytes bytes(length, 0x5a);
  packet::UdpFrame header;
  header.destination_mac = {{2, 0, 0, 0, 0, 1}};
  header.source_mac = {{2, 0, 0, 0, 0, 2}};
  header.source = Ipv4Address{{10, 0, 0, 1}};
  header.destination = Ipv4Address{{10, 0, 0, 2}};
  header.source_port = source_port;
  header.destination_port = 2000;
  EXPECT_EQ(packet::emit(header, bytes), kHeaders);
  return bytes;
}

/// The one frame that comes when `frame` is sent.
rte_mbuf* loop(Port& port, const Pool& pool, const Bytes& frame, std::uint16_t queue = 0) {
  EXPECT_EQ(port.send(pool.make(frame)), 1);
  const std::vector<rte_mbuf*> received = port.receive(queue);
  EXPECT_EQ(received.size(), 1U);
  return received.empty() ? nullptr : received[0];
}

TEST(DriverOffloadsTest, ChecksumsAreFilledInAndVerified) {
  const Pool pool;
  Port port("net_vnic0");
  ASSERT_EQ(port.start(pool.get(), {.rx_offloads = kRxChecksums,
                                    .tx_offloads = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM}),
            0);
  const Bytes right = udp_frame(101);
  Bytes blank = right;
  blank[24] = blank[25] = 0xee;
  blank[40] = blank[41] = 0xee;
  rte_mbuf* mbuf = pool.make(blank);
  mbuf->l2_len = 14;
  mbuf->l3_len = 20;
  mbuf->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM;
  ASSERT_EQ(rte_eth_tx_prepare(port.id, 0, &mbuf, 1), 1);
  ASSERT_EQ(port.send(mbuf), 1);
  std::vector<rte_mbuf*> received = port.receive();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_TRUE(std::equal(right.begin(), right.end(), rte_pktmbuf_mtod(received[0], const std::uint8_t*)));
  EXPECT_EQ(received[0]->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK, RTE_MBUF_F_RX_IP_CKSUM_GOOD);
  EXPECT_EQ(received[0]->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK, RTE_MBUF_F_RX_L4_CKSUM_GOOD);
  rte_pktmbuf_free(received[0]);

  Bytes bad_ip = right;
  bad_ip[24] ^= 1;
  mbuf = loop(port, pool, bad_ip);
  ASSERT_NE(mbuf, nullptr);
  EXPECT_EQ(mbuf->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK, RTE_MBUF_F_RX_IP_CKSUM_BAD);
  rte_pktmbuf_free(mbuf);
  Bytes bad_udp = right;
  bad_udp[50] ^= 1;
  mbuf = loop(port, pool, bad_udp);
  ASSERT_NE(mbuf, nullptr);
  EXPECT_EQ(mbuf->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK, RTE_MBUF_F_RX_IP_CKSUM_GOOD);
  EXPECT_EQ(mbuf->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK, RTE_MBUF_F_RX_L4_CKSUM_BAD);
  rte_pktmbuf_free(mbuf);
  EXPECT_EQ(port.counts()["rx_bad_ip_checksum"], 1U);
  EXPECT_EQ(port.counts()["rx_bad_l4_checksum"], 1U);
}

TEST(DriverOffloadsTest, AChecksumFilledInOnAWrongPseudoHeaderIsFoundBad) {
  const Pool pool;
  Port port("net_vnic0");
  ASSERT_EQ(port.start(pool.get(), {.rx_offloads = kRxChecksums, .tx_offloads = RTE_ETH_TX_OFFLOAD_UDP_CKSUM}), 0);
  const auto send_on = [&](int error) {
    rte_mbuf* const mbuf = pool.make(udp_frame(101));
    auto* const ip = rte_pktmbuf_mtod_offset(mbuf, rte_ipv4_hdr*, 14);
    rte_pktmbuf_mtod_offset(mbuf, rte_udp_hdr*, 34)->dgram_cksum =
        static_cast<std::uint16_t>(rte_ipv4_phdr_cksum(ip, 0) + error);
    mbuf->l2_len = 14;
    mbuf->l3_len = 20;
    mbuf->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM;
    EXPECT_EQ(port.send(mbuf), 1);
    const std::vector<rte_mbuf*> received = port.receive();
    if (received.size() != 1) return std::uint64_t{0};
    const std::uint64_t flags = received[0]->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
    rte_pktmbuf_free(received[0]);
    return flags;
  };
  EXPECT_EQ(send_on(0), RTE_MBUF_F_RX_L4_CKSUM_GOOD);
  EXPECT_EQ(send_on(1), RTE_MBUF_F_RX_L4_CKSUM_BAD);
}

TEST(DriverOffloadsTest, PrepareRefusesWhatTheDeviceHasNot) {
  const Pool pool;
  Port port("net_vnic0", "wire=sink");
  ASSERT_EQ(port.start(pool.get()), 0);
  rte_mbuf* mbufs[] = {pool.make(udp_frame(64)), pool.make(udp_frame(64))};
  mbufs[1]->ol_flags |= RTE_MBUF_F_TX_TCP_SEG;
  EXPECT_EQ(rte_eth_tx_prepare(port.id, 0, mbufs, 2), 1);
  EXPECT_EQ(rte_errno, ENOTSUP);
  mbufs[1]->ol_flags = RTE_MBUF_F_TX_SCTP_CKSUM;
  EXPECT_EQ(rte_eth_tx_prepare(port.id, 0, mbufs, 2), 1);
  rte_pktmbuf_free_bulk(mbufs, 2);
}

TEST(DriverOffloadsTest, FlowsSpreadOverQueuesAndHashesAreReported) {
  const Pool pool(8192);
  Port port("net_vnic0");
  ASSERT_EQ(
      port.start(pool.get(),
                 {.queues = 4, .rx_offloads = RTE_ETH_RX_OFFLOAD_RSS_HASH, .rss_fields = RTE_ETH_RSS_NONFRAG_IPV4_UDP}),
      0);
  for (std::uint16_t flow = 0; flow < 64; ++flow) {
    ASSERT_EQ(port.send(pool.make(udp_frame(64, flow))), 1);
    ASSERT_EQ(port.send(pool.make(udp_frame(64, flow))), 1);
  }
  std::size_t total = 0;
  for (std::uint16_t queue = 0; queue < 4; ++queue) {
    const std::vector<rte_mbuf*> received = port.receive(queue);
    EXPECT_GT(received.size(), 8U);
    EXPECT_EQ(received.size() % 2, 0U);
    total += received.size();
    for (rte_mbuf* const mbuf : received) {
      EXPECT_NE(mbuf->ol_flags & RTE_MBUF_F_RX_RSS_HASH, 0U);
      EXPECT_EQ(mbuf->hash.rss % 512 % 4, queue);
      EXPECT_EQ(mbuf->packet_type, RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4_EXT_UNKNOWN | RTE_PTYPE_L4_UDP);
      rte_pktmbuf_free(mbuf);
    }
  }
  EXPECT_EQ(total, 128U);
}

TEST(DriverOffloadsTest, ARuleMarksSteersAndCountsEvenInThePlainPath) {
  const Pool pool;
  Port port("net_vnic0");
  ASSERT_EQ(port.start(pool.get(), {.queues = 2}), 0);
  rte_flow_attr attr{};
  attr.ingress = 1;
  rte_flow_item_udp udp{};
  rte_flow_item_udp udp_mask{};
  udp.hdr.src_port = rte_cpu_to_be_16(7);
  udp_mask.hdr.src_port = 0xffff;
  const rte_flow_item pattern[] = {{RTE_FLOW_ITEM_TYPE_ETH, nullptr, nullptr, nullptr},
                                   {RTE_FLOW_ITEM_TYPE_IPV4, nullptr, nullptr, nullptr},
                                   {RTE_FLOW_ITEM_TYPE_UDP, &udp, nullptr, &udp_mask},
                                   {RTE_FLOW_ITEM_TYPE_END, nullptr, nullptr, nullptr}};
  const rte_flow_action_mark mark{.id = 0xabcdef};
  const rte_flow_action_queue queue{.index = 1};
  const rte_flow_action actions[] = {{RTE_FLOW_ACTION_TYPE_MARK, &mark},
                                     {RTE_FLOW_ACTION_TYPE_QUEUE, &queue},
                                     {RTE_FLOW_ACTION_TYPE_COUNT, nullptr},
                                     {RTE_FLOW_ACTION_TYPE_END, nullptr}};
  rte_flow_error error{};
  rte_flow* const rule = rte_flow_create(port.id, &attr, pattern, actions, &error);
  ASSERT_NE(rule, nullptr) << error.message;
  rte_mbuf* const marked = loop(port, pool, udp_frame(64, 7), 1);
  ASSERT_NE(marked, nullptr);
  EXPECT_NE(marked->ol_flags & RTE_MBUF_F_RX_FDIR_ID, 0U);
  EXPECT_EQ(marked->hash.fdir.hi, 0xabcdefU);
  rte_pktmbuf_free(marked);
  rte_mbuf* const other = loop(port, pool, udp_frame(64, 8), 0);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->ol_flags & RTE_MBUF_F_RX_FDIR_ID, 0U);
  rte_pktmbuf_free(other);
  rte_flow_query_count hits{};
  ASSERT_EQ(rte_flow_query(port.id, rule, &actions[2], &hits, &error), 0);
  EXPECT_EQ(hits.hits, 1U);
  EXPECT_EQ(rte_flow_destroy(port.id, rule, &error), 0);
}

TEST(DriverOffloadsTest, ASplitAtHeadersParts42BytesFromTheRest) {
  const Pool heads(1024, 128 + RTE_PKTMBUF_HEADROOM);
  const Pool bodies(1024);
  const Pool sent_pool(1024);
  Port port("net_vnic0");
  rte_eth_rxseg_split first{};
  first.mp = heads.get();
  first.proto_hdr = RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4_EXT_UNKNOWN | RTE_PTYPE_L4_UDP;
  rte_eth_rxseg_split second{};
  second.mp = bodies.get();
  ASSERT_EQ(port.start(nullptr, {.rx_offloads = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER,
                                 .split = {first, second}}),
            0);
  rte_mbuf* const mbuf = loop(port, sent_pool, udp_frame(1000));
  ASSERT_NE(mbuf, nullptr);
  ASSERT_EQ(mbuf->nb_segs, 2);
  EXPECT_EQ(mbuf->data_len, kHeaders);
  EXPECT_EQ(mbuf->next->data_len, 1000 - kHeaders);
  EXPECT_EQ(mbuf->next->pool, bodies.get());
  EXPECT_EQ(*rte_pktmbuf_mtod(mbuf->next, const std::uint8_t*), 0x5a);
  rte_pktmbuf_free(mbuf);
}

}  // namespace
}  // namespace warpline::vnic
