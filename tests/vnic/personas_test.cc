// SPDX-License-Identifier: Apache-2.0
// Ports that are other NICs: what their drivers carry, refuse and touch.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <deque>
#include <string>

#include <rte_flow.h>
#include <rte_mbuf_dyn.h>

#include "port.h"
#include "vnic/personas/persona.h"
#include "warpline/base/device/unreachable_memory_testing.h"
#include "warpline/vnic/copy_ops.h"

namespace warpline::vnic {

void PrintTo(const Persona& persona, std::ostream* out) { *out << persona.name; }

namespace {

constexpr std::uint64_t kFastFree = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;

/// Frames that are carried at most; more than any ring has.
constexpr std::uint32_t kFrames = 3000;

/// A port of the persona that a test is about, its link up.
class PersonaPort : public testing::TestWithParam<Persona> {
 protected:
  static std::string args(const std::string& more = "") { return "persona=" + std::string(GetParam().name) + more; }

  static rte_eth_dev_info info_of(const Port& port) {
    rte_eth_dev_info info{};
    EXPECT_EQ(rte_eth_dev_info_get(port.id(), &info), 0);
    return info;
  }

  /// All that the driver tells of, as a program asks for it: rings that it takes, and every offload.
  static PortSetup setup_of(const Port& port, const Pool& pool, std::uint16_t queues = 1) {
    const rte_eth_dev_info info = info_of(port);
    PortSetup setup = simple(pool, queues);
    EXPECT_EQ(rte_eth_dev_adjust_nb_rx_tx_desc(port.id(), &setup.rx_ring, &setup.tx_ring), 0);
    setup.conf.rxmode.offloads = info.rx_offload_capa & ~std::uint64_t{RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT};
    setup.conf.txmode.offloads = info.tx_offload_capa & ~kFastFree;
    setup.rx = info.default_rxconf;
    setup.tx = info.default_txconf;
    if (info.flow_type_rss_offloads != 0) {
      setup.conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
      setup.conf.rx_adv_conf.rss_conf.rss_hf = info.flow_type_rss_offloads;
    }
    setup.promiscuous = (GetParam().lacks & kLacksPromiscuous) == 0;
    return setup;
  }

  static void wait_for_link(const Port& port) {
    rte_eth_link link{};
    for (int looks = 0; looks < 100 && link.link_status != RTE_ETH_LINK_UP; ++looks) {
      ASSERT_EQ(rte_eth_link_get_nowait(port.id(), &link), 0);
    }
    ASSERT_EQ(link.link_status, RTE_ETH_LINK_UP);
  }

  /// Numbered frames to the port itself go round, each to the last byte.
  static void expect_carried(const Port& port, const Pool& pool, std::uint16_t queues, std::uint32_t most_bytes) {
    rte_ether_addr own{};
    ASSERT_EQ(rte_eth_macaddr_get(port.id(), &own), 0);
    std::vector<std::deque<packet::FrameBytes>> expected(queues);
    std::uint32_t received = 0;
    const auto take = [&] {
      for (std::uint16_t queue = 0; queue < queues; ++queue) {
        for (const packet::FrameBytes& frame : port.receive_all(queue)) {
          const bool known = std::ranges::any_of(expected, [&](auto& sent) {
            if (sent.empty() || sent.front() != frame) return false;
            sent.pop_front();
            return true;
          });
          EXPECT_TRUE(known);
          ++received;
        }
      }
    };
    for (std::uint32_t i = 0; i < kFrames; ++i) {
      packet::FrameBytes frame = numbered(i, 60 + i * 37 % (most_bytes - 59));
      std::copy_n(own.addr_bytes, RTE_ETHER_ADDR_LEN, frame.begin());
      const auto queue = static_cast<std::uint16_t>(i % queues);
      port.send(pool, frame, queue);
      expected[0].push_back(std::move(frame));
      if (i % 32 == 31) take();
    }
    take();
    EXPECT_EQ(received, kFrames);
  }
};

TEST_P(PersonaPort, TellsOfWhatItIs) {
  Port port("net_vnic0", args());
  const Persona& persona = GetParam();
  const rte_eth_dev_info info = info_of(port);
  EXPECT_EQ(info.max_rx_queues, persona.rx_queues);
  EXPECT_EQ(info.max_tx_queues, persona.tx_queues);
  EXPECT_EQ(info.max_mtu, persona.most_mtu);
  EXPECT_EQ(info.rx_offload_capa, persona.rx_offloads);
  EXPECT_EQ(info.tx_offload_capa, persona.tx_offloads);
  EXPECT_EQ(info.rx_desc_lim.nb_align, persona.rx_ring.multiple);
  EXPECT_EQ(info.tx_desc_lim.nb_mtu_seg_max, persona.pieces_told);
  EXPECT_EQ(info.flow_type_rss_offloads, persona.rss_fields);
}

TEST_P(PersonaPort, CarriesFramesOfOneBuffer) {
  const Pool pool(16383, 2048);
  Port port("net_vnic0", args());
  PortSetup setup = setup_of(port, pool, 1);
  for (int round = 0; round < 2; ++round) {
    port.bring_up(setup);
    wait_for_link(port);
    expect_carried(port, pool, 1, std::min<std::uint32_t>(1514, GetParam().most_mtu + 14U));
    expect_accounted(pool, {&port});
    ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
  }
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST_P(PersonaPort, SpreadsFlowsOverQueues) {
  const Pool pool(32767, 2048);
  Port port("net_vnic0", args());
  constexpr std::uint16_t kQueues = 4;
  port.bring_up(setup_of(port, pool, kQueues));
  wait_for_link(port);
  expect_carried(port, pool, kQueues, 600);
}

TEST_P(PersonaPort, CarriesLongFramesInSeveralBuffers) {
  const std::uint16_t mtu = GetParam().most_mtu;
  if (mtu < 9000) GTEST_SKIP() << "none longer than a buffer";
  const Pool pool(16383, 2048);
  Port port("net_vnic0", args());
  PortSetup setup = setup_of(port, pool);
  setup.conf.rxmode.mtu = mtu;
  port.bring_up(setup);
  wait_for_link(port);
  rte_ether_addr own{};
  ASSERT_EQ(rte_eth_macaddr_get(port.id(), &own), 0);
  packet::FrameBytes frame = numbered(1, mtu + 14U);
  std::copy_n(own.addr_bytes, RTE_ETHER_ADDR_LEN, frame.begin());
  rte_mbuf* const chain = pool.chain(frame, {2000, 2000, 2000, 2000});
  rte_mbuf* mbufs[] = {chain};
  ASSERT_EQ(port.send(mbufs, 1), 1);
  const Frames received = port.receive_all();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0], frame);
}

TEST_P(PersonaPort, DropsOrRefusesFramesOfMorePiecesThanTheDeviceSends) {
  const std::uint16_t most = GetParam().pieces_sent;
  if (most == 0) GTEST_SKIP() << "as many as the ring has";
  const Pool pool(16383, 2048);
  Port port("net_vnic0", args());
  port.bring_up(setup_of(port, pool));
  wait_for_link(port);
  const packet::FrameBytes frame = numbered(1, 1400);
  const auto in_pieces = [&](unsigned pieces) { return pool.chain(frame, std::vector<std::uint32_t>(pieces - 1, 20)); };
  rte_mbuf* mbufs[] = {in_pieces(most), in_pieces(most + 1U), in_pieces(1)};
  const std::uint16_t sent = rte_eth_tx_burst(port.id(), 0, mbufs, 3);
  if (GetParam().too_many_pieces == TooManyPieces::not_taken) {
    EXPECT_EQ(sent, 1);
    rte_pktmbuf_free(mbufs[1]);
    rte_pktmbuf_free(mbufs[2]);
  } else {
    EXPECT_EQ(sent, 3);
    EXPECT_EQ(port.stats().oerrors, 1U);
  }
  expect_accounted(pool, {&port});
}

TEST_P(PersonaPort, AnswersWhatItsDriverAnswers) {
  const QuietLog quiet;
  const Pool pool(8191, 2048);
  Port port("net_vnic0", args());
  port.bring_up(setup_of(port, pool));
  const auto lacks = [](Lack lack) { return (GetParam().lacks & lack) != 0; };
  const auto answer = [&](Lack lack) { return lacks(lack) ? -ENOTSUP : 0; };
  rte_eth_rxq_info rx{};
  rte_eth_txq_info tx{};
  rte_eth_stats stats{};
  std::uint64_t clock = 0;
  EXPECT_EQ(rte_eth_promiscuous_enable(port.id()), answer(kLacksPromiscuous));
  EXPECT_EQ(rte_eth_dev_set_link_up(port.id()), answer(kLacksLinkChange));
  EXPECT_EQ(rte_eth_rx_queue_info_get(port.id(), 0, &rx), answer(kLacksQueueInfo));
  EXPECT_EQ(rte_eth_tx_queue_info_get(port.id(), 0, &tx), answer(kLacksQueueInfo));
  EXPECT_EQ(rte_eth_tx_done_cleanup(port.id(), 0, 0), answer(kLacksCleanup));
  EXPECT_EQ(rte_eth_rx_queue_count(port.id(), 0), answer(kLacksRxStatus));
  EXPECT_EQ(rte_eth_tx_descriptor_status(port.id(), 0, 0) < 0, lacks(kLacksTxStatus));
  EXPECT_EQ(rte_eth_stats_get(port.id(), &stats), answer(kLacksStats));
  EXPECT_EQ(rte_eth_stats_reset(port.id()), lacks(kLacksStats) || lacks(kLacksStatsReset) ? -ENOTSUP : 0);
  EXPECT_EQ(rte_eth_read_clock(port.id(), &clock), answer(kLacksClock));
  EXPECT_EQ(rte_eth_dev_set_mtu(port.id(), 1400), lacks(kLacksMtuChange) ? -EBUSY : 0);
  rte_eth_rss_conf rss{};
  const bool no_fields = lacks(kLacksRssControl) || lacks(kLacksFieldChange);
  EXPECT_EQ(rte_eth_dev_rss_hash_conf_get(port.id(), &rss), no_fields ? -ENOTSUP : 0);
}

TEST_P(PersonaPort, TakesFlowRulesWhenItsDriverDoes) {
  const Pool pool(8191, 2048);
  Port port("net_vnic0", args());
  ASSERT_EQ(port.configure(setup_of(port, pool)), 0);
  const FlowRuleTimes times = GetParam().flow_rules;
  rte_flow_attr attr{};
  attr.ingress = 1;
  const rte_flow_item pattern[] = {{RTE_FLOW_ITEM_TYPE_ETH, nullptr, nullptr, nullptr},
                                   {RTE_FLOW_ITEM_TYPE_END, nullptr, nullptr, nullptr}};
  const rte_flow_action actions[] = {{RTE_FLOW_ACTION_TYPE_DROP, nullptr}, {RTE_FLOW_ACTION_TYPE_END, nullptr}};
  rte_flow_error error{};
  const auto create = [&] { return rte_flow_create(port.id(), &attr, pattern, actions, &error); };
  EXPECT_EQ(create() != nullptr, times == FlowRuleTimes::any);
  ASSERT_EQ(rte_eth_dev_start(port.id()), 0);
  rte_flow* const rule = create();
  EXPECT_EQ(rule != nullptr, times != FlowRuleTimes::never);
  ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
  const bool kept = rule != nullptr && rte_flow_destroy(port.id(), rule, &error) == 0;
  EXPECT_EQ(kept, rule != nullptr && GetParam().keeps_flow_rules);
}

TEST_P(PersonaPort, TakesMemoryThatTheCpuDoesNotReachIfItsDriverLeavesPayloadAlone) {
  const UnreachableMemory memory(std::size_t{2} << 20);
  Port port("net_vnic0", args());
  ASSERT_EQ(rte_extmem_register(memory.device().data(), memory.device().size(), nullptr, 0, 4096), 0);
  const auto at = reinterpret_cast<std::uintptr_t>(memory.device().data());
  const rte_eth_dev_info info = info_of(port);
  const int mapped = rte_dev_dma_map(info.device, memory.device().data(), at, memory.device().size());
  const bool touches =
      GetParam().touches_received != 0 || (GetParam().reads_sent.bytes != 0 && !GetParam().reads_sent.can_be_set);
  EXPECT_EQ(mapped, touches ? -1 : 0);
  if (mapped == 0) {
    EXPECT_EQ(rte_dev_dma_unmap(info.device, memory.device().data(), at, memory.device().size()), 0);
  } else {
    EXPECT_EQ(rte_errno, ENOTSUP);
  }
  ASSERT_EQ(rte_extmem_unregister(memory.device().data(), memory.device().size()), 0);
}

INSTANTIATE_TEST_SUITE_P(All, PersonaPort, testing::ValuesIn(personas().begin() + 1, personas().end()),
                         [](const auto& test) { return std::string(test.param.name); });

/// Moves payload to and from memory that ends whoever touches it, by its other addresses.
class ReachingCopies {
 public:
  explicit ReachingCopies(const UnreachableMemory& memory) : memory_(memory) {}
  [[nodiscard]] rte_net_vnic_copy_engine engine() { return {this, open, close, submit, landed}; }

 private:
  struct Lane {
    const UnreachableMemory& memory;
    std::uint64_t landed = 0;
  };
  static void* open(void* self, rte_net_vnic_direction /*direction*/, std::uint16_t /*queue*/) {
    auto& copies = *static_cast<ReachingCopies*>(self);
    return &copies.lanes_.emplace_back(Lane{copies.memory_});
  }
  static void close(void* /*lane*/) {}
  static int submit(void* opaque, const rte_net_vnic_copy* copies, std::uint32_t count) {
    Lane& lane = *static_cast<Lane*>(opaque);
    for (std::uint32_t i = 0; i < count; ++i) {
      std::memcpy(lane.memory.reach(copies[i].to), lane.memory.reach(copies[i].from), copies[i].length);
    }
    ++lane.landed;
    return 0;
  }
  static std::uint64_t landed(void* opaque) { return static_cast<Lane*>(opaque)->landed; }

  const UnreachableMemory& memory_;
  std::deque<Lane> lanes_;
};

sigjmp_buf before_fault;

/// Whether the call touches memory that it must not.
template <typename Call>
bool is_fault(Call call) {
  struct sigaction jump{};
  struct sigaction before{};
  jump.sa_handler = [](int /*signal*/) { siglongjmp(before_fault, 1); };
  sigaction(SIGSEGV, &jump, &before);
  const bool faulted = sigsetjmp(before_fault, 1) != 0;
  if (!faulted) call();
  sigaction(SIGSEGV, &before, nullptr);
  return faulted;
}

/// A mlx5 port of eight queue pairs, so that it inlines, whose payload lies where the CPU does not reach it.
class Inlining : public testing::Test {
 protected:
  static constexpr std::uint16_t kQueues = 8;
  static constexpr std::uint16_t kElement = 2048;
  static constexpr unsigned kBuffers = 4095;

  Inlining() { EXPECT_EQ(rte_extmem_register(begin(), memory_.device().size(), nullptr, 0, 4096), 0); }
  ~Inlining() override { EXPECT_EQ(rte_extmem_unregister(begin(), memory_.device().size()), 0); }
  [[nodiscard]] void* begin() const { return memory_.device().data(); }

  void carry(const std::string& more, std::uint64_t flag = 0, bool faults = false) {
    Port port("net_vnic0", "persona=mlx5" + more);
    rte_eth_dev_info info{};
    ASSERT_EQ(rte_eth_dev_info_get(port.id(), &info), 0);
    const auto at = reinterpret_cast<std::uintptr_t>(begin());
    ASSERT_EQ(rte_dev_dma_map(info.device, begin(), at, memory_.device().size()), 0);
    const Pool pool(kBuffers, begin(), memory_.device().size(), kElement);
    PortSetup setup = simple(pool, kQueues);
    setup.conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    ASSERT_EQ(port.configure(setup), 0);
    ReachingCopies copies(memory_);
    const rte_net_vnic_copy_engine engine = copies.engine();
    ASSERT_EQ(rte_net_vnic_set_copy_engine(port.id(), &engine), 0);
    ASSERT_EQ(rte_eth_dev_start(port.id()), 0);
    const packet::FrameBytes frame = numbered(7, 200);
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool.get());
    mbuf->data_len = static_cast<std::uint16_t>(frame.size());
    mbuf->pkt_len = mbuf->data_len;
    mbuf->ol_flags |= flag;
    std::ranges::copy(frame, memory_.reach(rte_pktmbuf_mtod(mbuf, std::uint8_t*)));
    ASSERT_EQ(is_fault([&] { EXPECT_EQ(port.send(&mbuf, 1), 1); }), faults);
    if (faults) {
      rte_pktmbuf_free(mbuf);
      ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
      return;
    }
    rte_mbuf* back = nullptr;
    for (int polls = 0; polls < 100 && back == nullptr; ++polls) {
      rte_mbuf* some[4];
      if (rte_eth_rx_burst(port.id(), 0, some, 4) == 1) back = some[0];
    }
    ASSERT_NE(back, nullptr);
    EXPECT_TRUE(
        std::ranges::equal(frame, std::span(memory_.reach(rte_pktmbuf_mtod(back, std::uint8_t*)), back->data_len)));
    rte_pktmbuf_free(back);
    ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
    port.close();
  }

  UnreachableMemory memory_{std::size_t{kBuffers + 1} * kElement};
};

TEST_F(Inlining, IsOffByItsArgument) { carry(",txq_inline_max=0"); }

TEST_F(Inlining, IsOffForFewQueues) { carry(",txqs_inline=9"); }

TEST_F(Inlining, IsOffForMbufsThatSaySo) {
  rte_mbuf_dynflag flag{};
  std::snprintf(flag.name, sizeof flag.name, "mlx5_fine_granularity_inline");
  const int bit = rte_mbuf_dynflag_register(&flag);
  ASSERT_GE(bit, 0);
  carry("", std::uint64_t{1} << bit);
}

TEST_F(Inlining, ReadsPayloadOtherwise) { carry("", 0, true); }

}  // namespace
}  // namespace warpline::vnic
