// SPDX-License-Identifier: Apache-2.0
// Frames in several pieces: sent so, scattered over buffers, split between pools.

#include <gtest/gtest.h>

#include <numeric>

#include "port.h"

namespace warpline::vnic {
namespace {

constexpr std::size_t kSizes[] = {60, 64, 255, 256, 257, 1514, 2048, 4096, 9014, 9022};

std::vector<std::uint32_t> segment_lengths(const rte_mbuf* mbuf) {
  std::vector<std::uint32_t> lengths;
  for (; mbuf != nullptr; mbuf = mbuf->next) lengths.push_back(mbuf->data_len);
  return lengths;
}

rte_eth_rxseg_split segment(const Pool& pool, std::uint16_t length, std::uint16_t offset = 0,
                            std::uint32_t header = 0) {
  rte_eth_rxseg_split split{};
  split.mp = pool.get();
  split.length = length;
  split.offset = offset;
  split.proto_hdr = header;
  return split;
}

TEST(Segments, OfAnyLengthsLeaveAsOneFrame) {
  const Pool pool(2047, 9100);
  Port port("net_vnic0");
  PortSetup setup;
  setup.pool = pool.get();
  setup.conf.rxmode.mtu = 9000;
  setup.conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  port.bring_up(setup);
  for (const std::size_t size : kSizes) {
    for (const std::vector<std::uint32_t>& lengths :
         std::vector<std::vector<std::uint32_t>>{{}, {1}, {14}, {0, 20, 0}, {59}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
      rte_mbuf* mbuf = pool.chain(numbered(7, size), lengths);
      ASSERT_EQ(port.send(&mbuf, 1), 1);
      EXPECT_EQ(port.receive_all(), Frames{numbered(7, size)}) << size;
    }
  }
  const std::vector<std::uint32_t> many(63, 1);
  rte_mbuf* mbuf = pool.chain(numbered(8, 128), many);
  ASSERT_EQ(port.send(&mbuf, 1), 1);
  EXPECT_EQ(port.receive_all(), Frames{numbered(8, 128)});
  expect_accounted(pool, {&port});
}

TEST(Segments, LeaveWithoutTheOffloadToo) {
  const Pool pool;
  Port port("net_vnic0");
  PortSetup setup;
  setup.pool = pool.get();
  port.bring_up(setup);
  rte_mbuf* mbufs[] = {pool.chain(numbered(1)), pool.chain(numbered(2), {10, 20}), pool.chain(numbered(3))};
  ASSERT_EQ(port.send(mbufs, 3), 3);
  EXPECT_EQ(port.receive_all(), (Frames{numbered(1), numbered(2), numbered(3)}));
  expect_accounted(pool, {&port});
}

TEST(Segments, ThatNoRingHoldsAreMalformed) {
  const Pool pool(1023);
  Port port("net_vnic0");
  PortSetup setup;
  setup.pool = pool.get();
  setup.tx_ring = 64;
  port.bring_up(setup);
  rte_mbuf* mbufs[] = {pool.chain(numbered(1)), pool.chain(numbered(2, 200), std::vector<std::uint32_t>(99, 1)),
                       pool.chain(numbered(3))};
  ASSERT_EQ(port.send(mbufs, 3), 3);
  EXPECT_EQ(port.receive_all(), (Frames{numbered(1), numbered(3)}));
  EXPECT_EQ(port.count(Count::tx_malformed), 1U);
  rte_mbuf* empty = rte_pktmbuf_alloc(pool.get());
  ASSERT_EQ(port.send(&empty, 1), 1);
  EXPECT_EQ(port.receive_all().size(), 0U);
  EXPECT_EQ(port.count(Count::tx_malformed), 2U) << "a frame of nothing";
  EXPECT_EQ(port.stats().oerrors, 2U);
  expect_accounted(pool, {&port});
}

TEST(Scatter, TakesAsManyBuffersAsAFrameNeeds) {
  for (const std::uint16_t ring : {64, 100, 333}) {
    const Pool senders(255, 9100);
    const Pool pool(1023, 256);
    Port port("net_vnic0");
    PortSetup setup;
    setup.pool = pool.get();
    setup.rx_ring = ring;
    setup.rx.rx_free_thresh = 8;
    setup.conf.rxmode.mtu = 9000;
    setup.conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_SCATTER;
    port.bring_up(setup);
    for (int round = 0; round < 20; ++round) {
      for (const std::size_t size : kSizes) {
        port.send(senders, numbered(3, size));
        rte_mbuf* const mbuf = port.receive_one();
        ASSERT_NE(mbuf, nullptr) << size;
        EXPECT_EQ(mbuf->nb_segs, (size + 255) / 256);
        EXPECT_EQ(taken(mbuf), numbered(3, size));
      }
    }
    expect_accounted(pool, {&port});
    port.close();
  }
}

TEST(Scatter, IsNeededForFramesBeyondABuffer) {
  const Pool pool(1023, 512);
  Port port("net_vnic0");
  PortSetup setup;
  setup.pool = pool.get();
  port.bring_up(setup);
  rte_mbuf* mbufs[] = {pool.chain(numbered(1, 512)), pool.chain(numbered(2, 513), {300}), pool.chain(numbered(3, 100))};
  ASSERT_EQ(port.send(mbufs, 3), 3);
  EXPECT_EQ(port.receive_all(), (Frames{numbered(1, 512), numbered(3, 100)}));
  EXPECT_EQ(port.count(Count::rx_too_long), 1U);
  EXPECT_EQ(port.stats().ierrors, 1U);
}

TEST(BufferSplit, ByLengthIntoPoolsOfTheirOwn) {
  const Pool headers(2047, 128);
  const Pool middle(2047, 256);
  const Pool payload(2047, 2048);
  Port port("net_vnic0");
  PortSetup setup;
  setup.conf.rxmode.mtu = 9000;
  setup.conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER;
  setup.split = {segment(headers, 64), segment(middle, 200, 16), segment(payload, 0)};
  setup.rx_ring = 256;  // no multiple of three
  port.bring_up(setup);
  for (int round = 0; round < 50; ++round) {
    for (const std::size_t size : {60UL, 64UL, 65UL, 264UL, 265UL, 1514UL}) {
      port.send(payload, numbered(5, size));
      rte_mbuf* const mbuf = port.receive_one();
      ASSERT_NE(mbuf, nullptr) << size;
      const std::vector<std::uint32_t> lengths = segment_lengths(mbuf);
      EXPECT_EQ(lengths[0], std::min<std::size_t>(size, 64));
      EXPECT_EQ(lengths.size(), size <= 64 ? 1U : size <= 264 ? 2U : 3U);
      EXPECT_EQ(mbuf->pool, headers.get());
      if (lengths.size() > 1) {
        EXPECT_EQ(mbuf->next->pool, middle.get());
        EXPECT_EQ(mbuf->next->data_off, 16) << "the headroom is the first segment's";
      }
      if (lengths.size() > 2) {
        EXPECT_EQ(mbuf->next->next->pool, payload.get());
      }
      EXPECT_EQ(taken(mbuf), numbered(5, size));
    }
  }
  expect_accounted(headers, {&port});
  expect_accounted(middle, {&port});
  expect_accounted(payload, {&port});
}

TEST(BufferSplit, OfAFrameBeyondOneGroupGoesOnInTheNext) {
  const Pool headers(2047, 128);
  const Pool payload(2047, 2048);
  const Pool senders(63, 9100);
  Port port("net_vnic0");
  PortSetup setup;
  setup.conf.rxmode.mtu = 9000;
  setup.conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER;
  setup.split = {segment(headers, 100), segment(payload, 0)};
  port.bring_up(setup);
  for (int round = 0; round < 40; ++round) {
    port.send(senders, numbered(9, 9014));
    EXPECT_EQ(port.receive_all(), Frames{numbered(9, 9014)});
  }
  expect_accounted(headers, {&port});
  expect_accounted(payload, {&port});
}

TEST(BufferSplit, ByHeaderEndsTheFirstSegmentWhereThePayloadBegins) {
  const Pool headers(1023, 256);
  const Pool payload(1023, 2048);
  Port port("net_vnic0");
  PortSetup setup;
  setup.conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER;
  setup.split = {segment(headers, 0, 0, RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4_EXT_UNKNOWN | RTE_PTYPE_L4_UDP),
                 segment(payload, 0)};
  port.bring_up(setup);
  const packet::FrameBytes data = packet::counting(500);
  struct Case {
    packet::FrameBytes frame;
    std::uint32_t header;
  };
  const packet::FrameBytes options = packet::counting(12, 1);
  for (const Case& c : {Case{packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(data)), 14 + 20 + 8},
                        Case{packet::ipv4_frame(packet::kProtocolTcp, packet::tcp_segment(data)), 14 + 20 + 20},
                        Case{packet::ipv6_frame(packet::kProtocolUdp, packet::udp_datagram(data)), 14 + 40 + 8},
                        Case{packet::tagged(packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(data)),
                                            packet::kEtherTypeVlan, 5),
                             18 + 20 + 8}}) {
    port.send(payload, c.frame);
    rte_mbuf* const mbuf = port.receive_one();
    ASSERT_NE(mbuf, nullptr);
    EXPECT_EQ(segment_lengths(mbuf), (std::vector<std::uint32_t>{c.header, 500}));
    EXPECT_EQ(mbuf->pool, headers.get());
    EXPECT_EQ(taken(mbuf), c.frame);
  }
  expect_accounted(headers, {&port});
  expect_accounted(payload, {&port});
}

TEST(BufferSplit, ThatMakesNoSenseIsRefused) {
  const QuietLog quiet;
  const Pool pool(255, 256);
  const Pool small(255, 64);
  Port port("net_vnic0");
  PortSetup setup;
  setup.conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER;
  const auto refused = [&](std::vector<rte_eth_rxseg_split> split) {
    setup.split = std::move(split);
    EXPECT_LT(port.configure(setup), 0);
  };
  refused(std::vector(5, segment(pool, 64)));
  refused({segment(pool, 0), segment(pool, 0)});
  refused({segment(pool, 64), segment(small, 1000)});
  refused({segment(pool, 64), segment(pool, 64, 60000)});
  rte_eth_rxseg_split none = segment(pool, 64);
  none.mp = nullptr;
  refused({segment(pool, 64), none});
  setup.split = {segment(pool, 64), segment(pool, 0)};
  EXPECT_EQ(port.configure(setup), 0);
  setup.conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT;
  EXPECT_LT(port.configure(setup), 0) << "without scatter, as mlx5";
}

TEST(BufferUnit, WhatDoesNotFitIntoWholeUnitsIsScattered) {
  const Pool pool(1023, 4032);
  const Pool small(255, 1000);
  const Pool senders(63, 9100);
  Port port("net_vnic0", "rx_buffer_unit=1024");
  PortSetup setup;
  setup.conf.rxmode.mtu = 4000;
  setup.pool = pool.get();
  port.bring_up(setup);
  for (const auto& [size, segments] : {std::pair<std::size_t, std::size_t>{3072, 1}, {3073, 2}, {4014, 2}}) {
    port.send(senders, numbered(3, size));
    rte_mbuf* const mbuf = port.receive_one();
    ASSERT_NE(mbuf, nullptr) << size;
    EXPECT_EQ(segment_lengths(mbuf).size(), segments) << size;
    EXPECT_EQ(taken(mbuf), numbered(3, size));
  }
  ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
  const QuietLog quiet;
  setup.pool = small.get();
  EXPECT_LT(port.configure(setup), 0) << "no whole unit";
}

TEST(Mtu, BoundsWhatIsReceived) {
  const QuietLog quiet;
  const Pool pool(511, 9100);
  Port port("net_vnic0");
  PortSetup setup;
  setup.pool = pool.get();
  port.bring_up(setup);
  const auto passes = [&](std::size_t size) {
    port.send(pool, numbered(1, size));
    return port.receive_all().size() == 1;
  };
  EXPECT_TRUE(passes(1514 + 8)) << "two VLAN tags are allowed for";
  EXPECT_FALSE(passes(1514 + 9));
  EXPECT_EQ(port.count(Count::rx_giant), 1U);
  ASSERT_EQ(rte_eth_dev_set_mtu(port.id(), 9000), 0);
  EXPECT_TRUE(passes(9014));
  ASSERT_EQ(rte_eth_dev_set_mtu(port.id(), 68), 0);
  EXPECT_FALSE(passes(128));
  EXPECT_EQ(rte_eth_dev_set_mtu(port.id(), 9001), -EINVAL);
  EXPECT_EQ(rte_eth_dev_set_mtu(port.id(), 67), -EINVAL);
}

TEST(Mtu, ThatDoesNotFitTheBuffersNeedsScatter) {
  const QuietLog quiet;
  const Pool pool(511, 2048);
  Port port("net_vnic0");
  PortSetup setup;
  setup.pool = pool.get();
  port.bring_up(setup);
  EXPECT_EQ(rte_eth_dev_set_mtu(port.id(), 9000), -EINVAL);
  port.send(pool, numbered(1, 1514));
  EXPECT_EQ(port.receive_all().size(), 1U);
}

}  // namespace
}  // namespace warpline::vnic
