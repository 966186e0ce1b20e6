// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "warpline/ingest/ingest_run.h"
#include "warpline/ingest/ingest_stages.h"
#include "warpline/memory/packet_pool.h"
#include "warpline/packet/frame_testing.h"
#include "warpline/port/port.h"
#include "warpline/port/ring_pair.h"
#include "warpline/runtime/eal_environment.h"

namespace warpline::ingest {
namespace {

const auto* const kEal =
    testing::AddGlobalTestEnvironment(new runtime::EalEnvironment(0, Bytes{std::uint64_t{1} << 30}));

constexpr std::uint16_t kBatch = 4;
constexpr std::uint16_t kRing = 1024;

/// Remembers what it read: one number per frame, or -1 for one whose bytes differ.
struct Reader {
  std::vector<int>* seen;

  Verdict operator()(FrameRef frame) const {
    const std::uint8_t number = frame.data()[0];
    bool same = true;
    for (std::uint16_t s = 0; s < frame.count; ++s) {
      for (std::uint32_t i = 0; i < frame.segments[s].length; ++i) same = same && frame.segments[s].data[i] == number;
    }
    seen->push_back(same ? number : -1);
    return number == 13 ? Verdict::user_drop : Verdict::forward;
  }
  void merge(const Reader&) {}
};

/// An engine that works only when the test says so, as a slow consumer does.
class HeldEngine {
 public:
  HeldEngine(const handoff::BurstRing& ring, Reader work) : view_(ring.engine_view()), next_(1), work_(work) {}
  Result<void> prepare() { return {}; }
  Result<void> start() { return {}; }
  void on_published() {}
  handoff::EngineLeft stop(Nanos) { return {}; }
  [[nodiscard]] std::string_view name() const { return "held"; }
  [[nodiscard]] std::uint32_t lanes() const { return 1; }
  [[nodiscard]] std::uint32_t batches_at_once() const { return 1; }
  [[nodiscard]] const handoff::LaneCounters& counters(std::uint32_t) const { return counters_; }
  [[nodiscard]] std::optional<Error> failure() const { return std::nullopt; }
  template <typename F>
  void for_each_worker_state(F&& f) const {
    f(work_);
  }
  /// Consumes one batch if there is one.
  bool consume() {
    const handoff::BurstView burst = view_.take(next_);
    if (!burst) return false;
    handoff::serve_burst(view_, next_++, burst, work_, counters_);
    return true;
  }

 private:
  handoff::EngineView view_;
  std::uint64_t next_;
  Reader work_;
  handoff::LaneCounters counters_;
};

/// A path that copies, on one end of a wire, and the test on the other.
class Path {
 public:
  explicit Path(std::uint32_t slots, bool keeps_mbufs = false, bool adapts = false)
      : rule({.burst = kBatch, .deadline_ticks = std::uint64_t{1} << 50, .adaptive = adapts, .slots = slots}) {
    if (!adapts) rule = BatchRule({.burst = kBatch});
    static int pools = 0;
    pool_.emplace(*memory::PacketPool::make("ingest" + std::to_string(pools++), 2047, 0, 2048, runtime::kAnyNode));
    const auto ids = *port::make_ring_pair(1, kRing, runtime::kAnyNode);
    for (const std::uint16_t id : {ids.first, ids.second}) {
      ports_.push_back(*port::Port::adopt(id));
      EXPECT_TRUE(ports_.back().configure({}, {.rx = 1, .tx = 1}).ok());
      EXPECT_TRUE(ports_.back().attach(pool_->get()).ok());
      EXPECT_TRUE(ports_.back().start().ok());
    }
    path.rx = path.tx = path.reply = {ports_[0].id(), 0};
    path.burst = kBatch;
    path.deadline_ticks = 0;
    path.tx_retries = 1;
    ring = *handoff::BurstRing::create({.slots = slots, .packets = kBatch, .segments = kBatch});
    memory = *BatchSlots::create({.slots = slots, .slot_bytes = batch_bytes(kBatch, 1500)});
    engine.emplace(*ring, Reader{&seen});
    gather.emplace(path, budget, *ring, *engine, *memory, counters.gather,
                   GatherSettings{.max_frame = longest_frame(1500), .keeps_mbufs = keeps_mbufs}, SharedRule(rule));
    deliver.emplace(path, *ring, counters.deliver, rule, keeps_mbufs);
  }

  /// Frames whose bytes are all their number, in pieces of `piece` bytes.
  void send(int first, int count, std::uint32_t length = 100, std::uint32_t piece = 2000) {
    for (int number = first; number < first + count; ++number) {
      rte_mbuf* frame = nullptr;
      for (std::uint32_t at = 0; at < length; at += piece) {
        rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_->get());
        std::memset(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(std::min(piece, length - at))), number,
                    std::min(piece, length - at));
        if (frame == nullptr) {
          frame = mbuf;
        } else {
          ASSERT_EQ(rte_pktmbuf_chain(frame, mbuf), 0);
        }
      }
      ASSERT_EQ(rte_eth_tx_burst(ports_[1].id(), 0, &frame, 1), 1);
    }
  }
  /// An ARP request for `address`.
  void ask_for(const Ipv4Address& address) {
    packet::ArpPacket question;
    question.target_ip = address;
    const packet::FrameBytes bytes = packet::arp_frame(question);
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_->get());
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(bytes.size())), bytes.data(), bytes.size());
    packet::store_address(rte_pktmbuf_mtod(mbuf, std::uint8_t*), MacAddress{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}});
    ASSERT_EQ(rte_eth_tx_burst(ports_[1].id(), 0, &mbuf, 1), 1);
  }
  [[nodiscard]] int came_back() {
    std::array<rte_mbuf*, 64> mbufs;
    const int count = rte_eth_rx_burst(ports_[1].id(), 0, mbufs.data(), mbufs.size());
    rte_pktmbuf_free_bulk(mbufs.data(), static_cast<unsigned>(count));
    return count;
  }
  [[nodiscard]] std::uint32_t in_use() const { return pool_->in_use(); }

 private:
  std::optional<memory::PacketPool> pool_;
  std::vector<port::Port> ports_;

 public:
  datapath::QueuePath path;
  datapath::PacketBudget budget{0};
  IngestCounters counters;
  std::vector<int> seen;
  BatchRule rule;
  std::unique_ptr<handoff::BurstRing> ring;
  std::unique_ptr<BatchSlots> memory;
  std::optional<HeldEngine> engine;
  std::optional<GatherStage<HeldEngine>> gather;
  std::optional<DeliverStage> deliver;
};

TEST(GatherStage, TakesNothingWhileNoSlotIsFreeAndOverwritesNothing) {
  Path path(2);
  path.send(1, 12);
  for (int i = 0; i < 5; ++i) path.gather->poll();
  EXPECT_EQ(path.path.received.packets.get(), 8U) << "two batches, the rest stays at the port";
  EXPECT_EQ(path.in_use(), 4U) << "copied packets are freed at once";
  EXPECT_GT(path.path.received.ring_full.get(), 0U);
  EXPECT_TRUE(path.engine->consume());
  path.gather->poll();
  EXPECT_EQ(path.path.received.packets.get(), 8U) << "consumed, but not yet taken back";
  EXPECT_EQ(path.deliver->poll(), 4);
  path.gather->poll();
  EXPECT_EQ(path.path.received.packets.get(), 12U);
  while (path.engine->consume()) path.deliver->poll();
  EXPECT_EQ(path.seen, (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(path.counters.deliver.packets.get(), 12U);
  EXPECT_EQ(path.counters.deliver.bytes.get(), 1200U);
  EXPECT_EQ(path.counters.gather.copies.get(), 3U);
  EXPECT_EQ(path.counters.gather.copied_bytes.get(), 12U * 112) << "each begins at a multiple of sixteen";
  EXPECT_EQ(path.in_use(), 0U);
}

TEST(GatherStage, ThatAdaptsKeepsWhatABatchLeavesForTheNextOnes) {
  for (const bool keeps : {false, true}) {
    Path path(4, keeps, true);
    std::vector<int> sent;
    for (int number = 1; number < 200; number += 9) {
      path.send(number, 9);
      for (int i = number; i < number + 9; ++i) sent.push_back(i);
      path.gather->poll();
      if (number % 4 == 0 && path.engine->consume()) path.deliver->poll();
      (void)path.came_back();
    }
    EXPECT_LT(path.path.received.packets.get(), sent.size()) << "some wait, held or at the port";
    while (path.path.received.packets.get() < sent.size() || path.ring->in_flight() != 0) {
      path.gather->poll();
      while (path.engine->consume()) path.deliver->poll();
      (void)path.came_back();
    }
    EXPECT_EQ(path.seen, sent);
    EXPECT_FALSE(path.path.holds_any());
    EXPECT_EQ(path.in_use(), 0U);
  }
}

TEST(GatherStage, PutsPiecesTogetherAndDropsGiantsByName) {
  Path path(2);
  path.send(1, 1, 1500, 333);
  path.send(2, 1, longest_frame(1500) + 1);
  path.send(3, 1, longest_frame(1500));
  path.gather->poll();
  EXPECT_TRUE(path.engine->consume());
  path.deliver->poll();
  EXPECT_EQ(path.seen, (std::vector<int>{1, 3}));
  EXPECT_EQ(path.path.sent.drops.get(Verdict::giant), 1U);
  EXPECT_EQ(path.counters.deliver.packets.get(), 2U);
  EXPECT_EQ(path.in_use(), 0U);
}

TEST(GatherStage, AnswersForThePortsAddressAndDeliversTheRest) {
  constexpr Ipv4Address kOwn{{10, 0, 0, 2}};
  for (const bool keeps : {false, true}) {
    Path path(2, keeps);
    path.path.responder.emplace(MacAddress{{2, 0, 0, 0, 0, 2}}, InterfaceAddress{kOwn, 24});
    path.send(1, 1);
    path.ask_for(kOwn);
    path.send(3, 1);
    path.ask_for(Ipv4Address{{10, 0, 0, 3}});
    path.gather->poll();
    EXPECT_TRUE(path.engine->consume());
    path.deliver->poll();
    EXPECT_EQ(path.path.sent.replies.get(), 1U);
    EXPECT_EQ(path.counters.deliver.packets.get(), 3U) << "with the question for another address";
    EXPECT_EQ(path.came_back(), keeps ? 4 : 1);
    EXPECT_EQ(path.in_use(), 0U);
  }
}

TEST(DeliverStage, DropsWhatTheConsumerRefusesAndSendsTheRest) {
  Path path(4, true);
  path.send(11, 4);
  path.gather->poll();
  EXPECT_EQ(path.in_use(), 4U) << "packets that are sent later are kept";
  EXPECT_TRUE(path.engine->consume());
  path.deliver->poll();
  EXPECT_EQ(path.path.sent.drops.get(Verdict::user_drop), 1U);
  EXPECT_EQ(path.path.sent.packets.get(), 3U);
  EXPECT_EQ(path.came_back(), 3);
  EXPECT_EQ(path.counters.deliver.sending.count(), 1U);
  EXPECT_EQ(path.in_use(), 0U);
}

TEST(DeliverStage, AccountsForWhatAnEngineNeverDid) {
  for (const bool keeps : {false, true}) {
    Path path(4, keeps);
    path.send(1, 6);
    path.gather->poll();
    path.gather->poll();
    EXPECT_TRUE(path.engine->consume());
    path.deliver->reclaim();
    EXPECT_EQ(path.counters.deliver.packets.get(), 4U);
    EXPECT_EQ(path.path.sent.drops.get(Verdict::engine_stopped), 2U);
    (void)path.came_back();
    EXPECT_EQ(path.in_use(), 0U);
  }
}

TEST(IngestRun, RefusesFramesWhosePacketsSeveralQueuesReceive) {
  struct Ignore final : FrameConsumer {
    bool consume(const ReadyFrame& /*frame*/) override { return true; }
  } consumer;
  datapath::DatapathSettings settings;
  settings.ports = {{.spec = "net_null0"}};
  settings.forward.engine = EngineKind::inline_;
  settings.forward.pipelines = 2;
  const IngestSettings ingest{.frame = "packets=16,seq=2:48:le,payload=18:140"};
  for (const auto& run :
       {IngestRun::start_frames(settings, ingest, consumer), IngestRun::start_kept_frames(settings, ingest, nullptr)}) {
    ASSERT_FALSE(run.ok());
    EXPECT_EQ(run.error().kind, ErrorKind::usage);
    EXPECT_NE(run.error().fix.find("stream=5-tuple"), std::string::npos);
  }
}

TEST(SlotsWithin, AreWhatTheBudgetHoldsAndNeverFewerThanTwo) {
  EXPECT_EQ(*slots_within(Bytes{1000}, 100, 16), 8U);
  EXPECT_EQ(*slots_within(Bytes{1000}, 100, 4), 4U);
  EXPECT_EQ(*slots_within(Bytes{200}, 100, 16), 2U);
  EXPECT_FALSE(slots_within(Bytes{199}, 100, 16).ok());
}

}  // namespace
}  // namespace warpline::ingest
