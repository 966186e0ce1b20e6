// SPDX-License-Identifier: Apache-2.0
#include "vnic/bursts/bursts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "vnic/api/driver_testing.h"
#include "vnic/engine/engine_testing.h"

namespace warpline::vnic {
namespace {

Bytes random_frame(std::mt19937_64& random, std::size_t length) {
  Bytes bytes(length);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  bytes[0] = 0x02;
  return bytes;
}

Bytes read_frame(const rte_mbuf* mbuf) {
  Bytes bytes;
  for (; mbuf != nullptr; mbuf = mbuf->next) {
    const auto* const data = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
    bytes.insert(bytes.end(), data, data + mbuf->data_len);
  }
  return bytes;
}

/// No more than fits into the packet buffer, whoever empties it.
constexpr std::size_t kMostOnTheWire = 400;

/// Sends frames in bursts of all sizes through a loopback and compares each with what comes back.
void loop_frames(const PortSetup& setup, const char* args, std::size_t longest, unsigned frames) {
  const Pool sent_pool(16384);
  const Pool pool(16384);
  std::mt19937_64 random(setup.ring);
  {
    Port port("net_vnic0", args);
    ASSERT_EQ(port.start(pool.get(), setup), 0);
    std::deque<Bytes> wire;
    for (unsigned sent = 0; sent < frames;) {
      std::vector<rte_mbuf*> burst(1 + random() % 48);
      std::deque<Bytes> contents;
      for (rte_mbuf*& mbuf : burst) {
        contents.push_back(random_frame(random, 14 + random() % (longest - 13)));
        mbuf = sent_pool.make(contents.back());
      }
      const std::uint16_t count = rte_eth_tx_burst(port.id, 0, burst.data(), static_cast<std::uint16_t>(burst.size()));
      for (std::size_t i = count; i < burst.size(); ++i) rte_pktmbuf_free(burst[i]);
      wire.insert(wire.end(), contents.begin(), contents.begin() + count);
      sent += count;
      do {
        for (rte_mbuf* const mbuf : port.receive(0, 1 + random() % 3)) {
          ASSERT_FALSE(wire.empty());
          ASSERT_EQ(read_frame(mbuf), wire.front());
          EXPECT_EQ(mbuf->port, port.id);
          EXPECT_EQ(mbuf->pkt_len, wire.front().size());
          wire.pop_front();
          rte_pktmbuf_free(mbuf);
        }
      } while (wire.size() > kMostOnTheWire || (sent >= frames && !wire.empty()));
    }
  }
  EXPECT_EQ(pool.free(), pool.size());
  EXPECT_EQ(sent_pool.free(), sent_pool.size());
}

TEST(BurstsTest, AReceiveCallRoundsDownWhatItIsAskedFor) {
  const Pool pool(1024);
  for (const std::uint64_t offloads : {std::uint64_t{0}, std::uint64_t{RTE_ETH_RX_OFFLOAD_SCATTER}}) {
    Port port("net_vnic0", "wire=source,rx_align=8");
    ASSERT_EQ(port.start(pool.get(), {.rx_offloads = offloads}), 0);
    for (const auto& [asked, delivered] : {std::pair<std::uint16_t, std::uint16_t>{7, 0}, {8, 8}, {23, 16}, {32, 32}}) {
      rte_mbuf* mbufs[32];
      const std::uint16_t count = rte_eth_rx_burst(port.id, 0, mbufs, asked);
      EXPECT_EQ(count, delivered) << asked;
      rte_pktmbuf_free_bulk(mbufs, count);
    }
  }
}

TEST(BurstsTest, FramesComeBackByteExactFromRingsOfAnySize) {
  for (const std::uint16_t ring : {64, 65, 100, 257, 1000, 8192}) {
    SCOPED_TRACE(ring);
    loop_frames({.ring = ring}, "", 1514, 3000);
    loop_frames({.ring = ring, .tx_offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE}, "", 200, 3000);
  }
}

TEST(BurstsTest, FramesComeBackFromAnEngineOnAThreadOfItsOwn) {
  loop_frames({.ring = 100}, "engine=thread", 1514, 2000);
  loop_frames({.ring = 512, .tx_offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE}, "engine=thread", 100, 2000);
  loop_frames({.ring = 100, .rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER, .mtu = 9000}, "engine=thread", 2000, 1000);
}

TEST(BurstsTest, FramesComeBackThroughTheFullPaths) {
  loop_frames({.ring = 100,
               .rx_offloads = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_TIMESTAMP,
               .tx_offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS},
              "", 1514, 3000);
  loop_frames({.ring = 100, .rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER, .mtu = 9000}, "", 2000, 2000);
}

TEST(BurstsTest, FramesComeBackWithOddThresholds) {
  loop_frames({.ring = 67, .rx_free_thresh = 1, .tx_free_thresh = 1, .tx_rs_thresh = 1}, "", 100, 2000);
  loop_frames({.ring = 67, .rx_free_thresh = 66, .tx_free_thresh = 60, .tx_rs_thresh = 7}, "", 100, 2000);
}

TEST(BurstsTest, ALongFrameIsScatteredAndChainsAreSentWhole) {
  const Pool small(4096, 256 + RTE_PKTMBUF_HEADROOM);
  std::mt19937_64 random(1);
  {
    Port port("net_vnic0");
    ASSERT_EQ(port.start(small.get(), {.rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER,
                                       .tx_offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS,
                                       .mtu = 9000}),
              0);
    for (const std::size_t length : {14, 256, 257, 512, 513, 5000, 9014}) {
      const Bytes content = random_frame(random, length);
      rte_mbuf* head = nullptr;
      for (std::size_t at = 0; at < length;) {
        const std::size_t piece = std::min<std::size_t>(length - at, 200);
        rte_mbuf* const mbuf = small.make({content.data() + at, piece});
        if (head == nullptr) {
          head = mbuf;
        } else {
          ASSERT_EQ(rte_pktmbuf_chain(head, mbuf), 0);
        }
        at += piece;
      }
      ASSERT_EQ(port.send(head), 1);
      const std::vector<rte_mbuf*> received = port.receive();
      ASSERT_EQ(received.size(), 1U) << length;
      EXPECT_EQ(received[0]->nb_segs, (length + 255) / 256);
      EXPECT_EQ(rte_mbuf_check(received[0], 1, nullptr), 0);
      EXPECT_EQ(read_frame(received[0]), content);
      rte_pktmbuf_free(received[0]);
    }
  }
  EXPECT_EQ(small.free(), small.size());
}

TEST(BurstsTest, AFrameTooLongForItsBufferIsCounted) {
  const Pool pool(1024, 256 + RTE_PKTMBUF_HEADROOM);
  const Pool sent_pool(1024);
  Port port("net_vnic0");
  ASSERT_EQ(port.start(pool.get()), 0);
  ASSERT_EQ(port.send(sent_pool.make(Bytes(300, 2))), 1);
  EXPECT_TRUE(port.receive().empty());
  EXPECT_EQ(port.counts()["rx_too_long"], 1U);
}

TEST(BurstsTest, ASplitByLengthFillsBothPools) {
  const Pool heads(1024);
  const Pool bodies(1024, 4096);
  std::mt19937_64 random(2);
  {
    Port port("net_vnic0");
    rte_eth_rxseg_split first{};
    first.mp = heads.get();
    first.length = 64;
    rte_eth_rxseg_split second{};
    second.mp = bodies.get();
    ASSERT_EQ(port.start(nullptr, {.ring = 101,
                                   .rx_offloads = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER,
                                   .split = {first, second}}),
              0);
    for (unsigned round = 0; round < 500; ++round) {
      const Bytes content = random_frame(random, 14 + random() % 1500);
      ASSERT_EQ(port.send(heads.make(content)), 1);
      const std::vector<rte_mbuf*> received = port.receive();
      ASSERT_EQ(received.size(), 1U);
      EXPECT_EQ(received[0]->pool, heads.get());
      EXPECT_EQ(received[0]->data_len, std::min<std::size_t>(content.size(), 64));
      EXPECT_EQ(received[0]->nb_segs, content.size() > 64 ? 2 : 1);
      if (content.size() > 64) {
        EXPECT_EQ(received[0]->next->pool, bodies.get());
      }
      EXPECT_EQ(read_frame(received[0]), content);
      rte_pktmbuf_free(received[0]);
    }
  }
  EXPECT_EQ(heads.free(), heads.size());
  EXPECT_EQ(bodies.free(), bodies.size());
}

/// What drivers leave an mbuf in its pool like: a chain's remains would become part of other frames.
void expect_unlinked(const Pool& pool) {
  rte_mempool_obj_iter(
      pool.get(),
      [](rte_mempool*, void*, void* object, unsigned) {
        const rte_mbuf* const mbuf = static_cast<rte_mbuf*>(object);
        EXPECT_EQ(mbuf->next, nullptr);
        EXPECT_EQ(mbuf->nb_segs, 1);
        EXPECT_EQ(rte_mbuf_refcnt_read(mbuf), 1);
      },
      nullptr);
  EXPECT_EQ(pool.free(), pool.size());
}

/// Frames in pairs go round a loopback as they were received, some of them held by somebody else, too.
void pass_pairs_round(const char* args, std::uint16_t ring, std::uint64_t tx_offloads, unsigned held_every,
                      unsigned frames) {
  const Pool heads(4096);
  const Pool rests(4096);
  std::mt19937_64 random(ring);
  {
    Port port("net_vnic0", args);
    rte_eth_rxseg_split first{};
    first.mp = heads.get();
    first.length = 60;
    rte_eth_rxseg_split second{};
    second.mp = rests.get();
    ASSERT_EQ(port.start(nullptr, {.ring = ring,
                                   .rx_offloads = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER,
                                   .tx_offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | tx_offloads,
                                   .split = {first, second}}),
              0);
    std::deque<Bytes> wire;
    for (unsigned i = 0; i < 20; ++i) {
      const std::size_t length = i % 3 == 0 ? 14 + random() % 47 : 61 + random() % 1400;
      wire.push_back(random_frame(random, length));
      ASSERT_EQ(port.send(heads.make(wire.back())), 1);
    }
    std::vector<rte_mbuf*> held;
    for (unsigned passed = 0; passed < frames;) {
      std::vector<rte_mbuf*> burst = port.receive(0, 1);
      for (rte_mbuf* const mbuf : burst) {
        ASSERT_EQ(read_frame(mbuf), wire.front());
        ASSERT_EQ(mbuf->nb_segs, wire.front().size() > 60 ? 2 : 1);
        ASSERT_EQ(rte_mbuf_check(mbuf, 1, nullptr), 0);
        wire.push_back(std::move(wire.front()));
        wire.pop_front();
        if (held_every == 0 || ++passed % held_every != 0) continue;
        rte_mbuf* const last = rte_pktmbuf_lastseg(mbuf);
        rte_mbuf_refcnt_update(passed % 2 == 0 ? last : mbuf, 1);
        held.push_back(passed % 2 == 0 ? last : mbuf);
      }
      if (held_every == 0) passed += static_cast<unsigned>(burst.size());
      ASSERT_EQ(rte_eth_tx_burst(port.id, 0, burst.data(), static_cast<std::uint16_t>(burst.size())), burst.size());
      // One segment each: what hangs on it is the queue's.
      for (; held.size() > 8; held.erase(held.begin())) rte_pktmbuf_free_seg(held.front());
    }
    for (rte_mbuf* const mbuf : held) rte_pktmbuf_free_seg(mbuf);
  }
  expect_unlinked(heads);
  expect_unlinked(rests);
}

TEST(BurstsTest, PairsGoBackToTheirPoolsUnlinked) {
  // The engine's thread and this one take turns, twenty frames each, so fewer frames do.
  for (const auto& [args, frames] : {std::pair{"", 20'000U}, std::pair{"engine=thread", 2'000U}}) {
    for (const std::uint16_t ring : {64, 101, 512}) {
      SCOPED_TRACE(ring);
      pass_pairs_round(args, ring, 0, 0, frames);
      pass_pairs_round(args, ring, 0, 7, frames);
      pass_pairs_round(args, ring, RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE, 0, frames);
    }
  }
}

TEST(BurstsTest, FramesOfAllLengthsOfAWireThatIsNotThereAreSplit) {
  const Pool heads(1024);
  const Pool rests(1024);
  for (const unsigned size : {60, 61, 1024}) {
    Port port("net_vnic0", "wire=static,size=" + std::to_string(size));
    rte_eth_rxseg_split first{};
    first.mp = heads.get();
    first.length = 60;
    rte_eth_rxseg_split second{};
    second.mp = rests.get();
    ASSERT_EQ(port.start(nullptr, {.ring = 101,
                                   .rx_offloads = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER,
                                   .tx_offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS,
                                   .split = {first, second}}),
              0);
    for (unsigned round = 0; round < 200; ++round) {
      std::vector<rte_mbuf*> burst = port.receive(0, 1);
      ASSERT_FALSE(burst.empty());
      for (const rte_mbuf* const mbuf : burst) {
        ASSERT_EQ(mbuf->pkt_len, size);
        ASSERT_EQ(mbuf->data_len, 60);
        ASSERT_EQ(rte_mbuf_check(mbuf, 1, nullptr), 0);
      }
      ASSERT_EQ(rte_eth_tx_burst(port.id, 0, burst.data(), static_cast<std::uint16_t>(burst.size())), burst.size());
    }
    port.close();
    expect_unlinked(heads);
    expect_unlinked(rests);
  }
}

TEST(BurstsTest, SentMbufsStayUntilABatchIsReported) {
  const Pool pool(1024);
  const Pool sent_pool(1024);
  Port port("net_vnic0", "wire=sink");
  ASSERT_EQ(port.start(pool.get(), {.ring = 128, .tx_free_thresh = 64, .tx_rs_thresh = 16}), 0);
  for (unsigned i = 0; i < 15; ++i) ASSERT_EQ(port.send(sent_pool.make(Bytes(60, 2))), 1);
  EXPECT_EQ(rte_eth_tx_done_cleanup(port.id, 0, 0), 0);
  EXPECT_EQ(sent_pool.free(), sent_pool.size() - 15);
  ASSERT_EQ(port.send(sent_pool.make(Bytes(60, 2))), 1);
  EXPECT_EQ(rte_eth_tx_done_cleanup(port.id, 0, 0), 16);
  EXPECT_EQ(sent_pool.free(), sent_pool.size());
  ASSERT_EQ(port.send(sent_pool.make(Bytes(60, 2))), 1);
  EXPECT_EQ(rte_eth_tx_descriptor_status(port.id, 0, 0), RTE_ETH_TX_DESC_DONE);
  EXPECT_EQ(rte_eth_tx_descriptor_status(port.id, 0, 127), RTE_ETH_TX_DESC_FULL);
}

TEST(BurstsTest, ADryPoolIsCountedAndRecoveredFrom) {
  const Pool pool(127);
  const Pool sent_pool(1024);
  Port port("net_vnic0");
  ASSERT_EQ(port.start(pool.get(), {.ring = 64}), 0);
  std::vector<rte_mbuf*> kept;
  for (unsigned i = 0; i < 200; ++i) {
    ASSERT_EQ(port.send(sent_pool.make(Bytes(60, 2))), 1);
    for (rte_mbuf* const mbuf : port.receive(0, 1)) kept.push_back(mbuf);
  }
  EXPECT_EQ(kept.size(), 127U);
  EXPECT_GT(port.counts()["rx_no_mbuf"], 0U);
  rte_pktmbuf_free_bulk(kept.data(), static_cast<unsigned>(kept.size()));
  const std::vector<rte_mbuf*> rest = port.receive(0, 8);
  EXPECT_EQ(rest.size(), 200U - 127U);
  for (rte_mbuf* const mbuf : rest) rte_pktmbuf_free(mbuf);
}

TEST(BurstsTest, AClonedMbufIsGivenBackByItsLastOwner) {
  const Pool pool(1024);
  const Pool sent_pool(1024);
  {
    Port port("net_vnic0", "wire=sink");
    ASSERT_EQ(port.start(pool.get(), {.tx_free_thresh = 32, .tx_rs_thresh = 1}), 0);
    rte_mbuf* const mbuf = sent_pool.make(Bytes(60, 2));
    rte_mbuf_refcnt_update(mbuf, 1);
    ASSERT_EQ(port.send(mbuf), 1);
    EXPECT_EQ(rte_eth_tx_done_cleanup(port.id, 0, 0), 1);
    EXPECT_EQ(rte_mbuf_refcnt_read(mbuf), 1);
    EXPECT_EQ(sent_pool.free(), sent_pool.size() - 1);
    rte_pktmbuf_free(mbuf);
  }
  EXPECT_EQ(sent_pool.free(), sent_pool.size());
}

TEST(BurstsTest, ABrokenPromiseOfFastFreeMixesNoPools) {
  const Pool pool(1024);
  const Pool one(256);
  const Pool other(256);
  for (const std::uint64_t offloads : {std::uint64_t{0}, RTE_ETH_TX_OFFLOAD_MULTI_SEGS}) {
    Port port("net_vnic0", "wire=sink");
    ASSERT_EQ(port.start(pool.get(), {.tx_offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE | offloads}), 0);
    for (unsigned i = 0; i < 1000; ++i) {
      ASSERT_EQ(port.send(one.make(Bytes(60, 2))), 1);
      rte_mbuf* const chain = one.make(Bytes(60, 2));
      ASSERT_EQ(rte_pktmbuf_chain(chain, other.make(Bytes(60, 2))), 0);
      ASSERT_EQ(port.send(i % 3 == 0 ? other.make(Bytes(60, 2)) : one.make(Bytes(60, 2))), 1);
      ASSERT_EQ(port.send(chain), 1);
    }
    port.close();
    EXPECT_EQ(one.free(), one.size());
    EXPECT_EQ(other.free(), other.size());
  }
}

TEST(BurstsTest, TimestampsAreOfThePortsClock) {
  const Pool pool(1024);
  int offset = -1;
  std::uint64_t flag = 0;
  Port port("net_vnic0");
  ASSERT_EQ(port.start(pool.get(), {.rx_offloads = RTE_ETH_RX_OFFLOAD_TIMESTAMP}), 0);
  ASSERT_EQ(rte_mbuf_dyn_rx_timestamp_register(&offset, &flag), 0);
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  ASSERT_EQ(rte_eth_read_clock(port.id, &before), 0);
  ASSERT_EQ(port.send(pool.make(Bytes(60, 2))), 1);
  const std::vector<rte_mbuf*> received = port.receive();
  ASSERT_EQ(rte_eth_read_clock(port.id, &after), 0);
  ASSERT_EQ(received.size(), 1U);
  ASSERT_NE(received[0]->ol_flags & flag, 0U);
  const std::uint64_t stamp = *RTE_MBUF_DYNFIELD(received[0], offset, rte_mbuf_timestamp_t*);
  EXPECT_GE(stamp, before);
  EXPECT_LE(stamp, after);
  rte_pktmbuf_free(received[0]);
}

}  // namespace
}  // namespace warpline::vnic
