// SPDX-License-Identifier: Apache-2.0
#include "warpline/traffic/traffic_worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>
#include <vector>

#include <rte_ethdev.h>

#include "warpline/packet/headers/ethernet.h"
#include "warpline/port/port.h"
#include "warpline/port/ring_pair.h"
#include "warpline/traffic/pool_testing.h"

namespace warpline::traffic {
namespace {

constexpr std::uint16_t kRing = 256;
constexpr std::uint16_t kBurst = 32;

/// Traffic workers on the far port of a wire; the test is what stands at its near end.
class Wire {
 public:
  Wire(TrafficGroup::Options options, const TrafficSettings& settings, const packet::Responder* responder = nullptr) {
    options.burst = kBurst;
    for (std::uint16_t i = 0; i < options.workers; ++i) pools_.push_back(make_test_pool(2047, 2048));
    const auto ids = *port::make_ring_pair(options.workers, kRing, -1);
    for (const std::uint16_t id : {ids.first, ids.second}) {
      ports_.push_back(*port::Port::adopt(id));
      EXPECT_TRUE(ports_.back().configure({}, {.rx = options.workers, .tx = options.workers}).ok());
      EXPECT_TRUE(ports_.back().attach(pools_[0].get()).ok());
      EXPECT_TRUE(ports_.back().start().ok());
    }
    group_.emplace(*TrafficPlan::make(settings, 1), options);
    for (std::uint16_t i = 0; i < options.workers; ++i) {
      workers_.push_back(std::make_unique<TrafficWorker>(
          *group_, TrafficWorker::Place{i, ports_[1].id(), i, true, responder}, *pools_[i].get()));
    }
  }
  explicit Wire(const TrafficGroup::Options& options) : Wire(options, traffic_of_size("64")) {}

  TrafficGroup& group() { return *group_; }
  TrafficWorker& worker(std::size_t i = 0) { return *workers_[i]; }

  /// What has come to the near end.
  std::vector<rte_mbuf*> receive(std::uint16_t queue = 0, std::uint16_t at_most = kRing) {
    std::vector<rte_mbuf*> mbufs(at_most);
    mbufs.resize(rte_eth_rx_burst(ports_[0].id(), queue, mbufs.data(), at_most));
    return mbufs;
  }

  void send(rte_mbuf* mbuf, std::uint16_t queue = 0) {
    if (rte_eth_tx_burst(ports_[0].id(), queue, &mbuf, 1) == 0) rte_pktmbuf_free(mbuf);
  }

  /// A frame of such bytes.
  rte_mbuf* new_frame(const std::vector<std::uint8_t>& bytes) {
    rte_mbuf* const mbuf = rte_pktmbuf_alloc(pools_[0].get());
    auto* const room =
        reinterpret_cast<std::uint8_t*>(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(bytes.size())));
    std::ranges::copy(bytes, room);
    return mbuf;
  }

  void reflect(std::uint16_t from = 0, std::uint16_t to = 0) {
    for (rte_mbuf* mbuf : receive(from, kBurst)) send(mbuf, to);
  }

  /// Turns of the only worker, and of `near` after each, until it is done.
  template <typename Near>
  void run(Near near) {
    while (!worker().done()) {
      worker().poll();
      near();
    }
  }

  /// Nothing was lost sight of: not a packet, not a buffer.
  void expect_accounted() {
    const TrafficGroup::Totals sums = group().totals();
    RunTotals totals;
    group().add_to(totals);
    EXPECT_TRUE(totals.conserved());
    EXPECT_EQ(sums.unsent, 0U);
    EXPECT_TRUE(group().done());
    for (std::uint16_t queue = 0; queue < workers_.size(); ++queue) {
      for (rte_mbuf* mbuf : receive(queue)) rte_pktmbuf_free(mbuf);
    }
    for (const memory::PacketPool& pool : pools_) EXPECT_EQ(pool.in_use(), 0U);
  }

 private:
  std::vector<memory::PacketPool> pools_;  ///< one a worker
  std::vector<port::Port> ports_;
  std::optional<TrafficGroup> group_;
  std::vector<std::unique_ptr<TrafficWorker>> workers_;
};

/// A drain of no time: whoever is out of sight is out of mind, and no test waits.
constexpr Nanos kNoDrain{0};
constexpr Nanos kLongDrain{600'000'000'000};

TEST(TrafficWorker, AllThatIsSentComesBack) {
  Wire wire({.packets = 1000, .drain = kLongDrain});
  wire.run([&] { wire.reflect(); });
  const TrafficGroup::Totals totals = wire.group().totals();
  EXPECT_EQ(totals.generated, (Tally{1000, 64000}));
  EXPECT_EQ(totals.tx, totals.generated);
  EXPECT_EQ(totals.rx, totals.generated);
  EXPECT_EQ(totals.delivered, totals.generated);
  EXPECT_EQ(totals.verify.checked, 1000U);
  EXPECT_TRUE(totals.verify.clean());
  EXPECT_EQ(wire.group().through(), totals.tx);
  Histogram latency;
  wire.group().merge_latency(latency);
  EXPECT_EQ(latency.count(), 1000U);
  wire.expect_accounted();
}

TEST(TrafficWorker, CountsLostDuplicatedReorderedAndCorruptFrames) {
  Wire wire({.packets = 640, .drain = kNoDrain}, traffic_of_size("64", 1));
  wire.run([&] {
    std::vector<rte_mbuf*> mbufs = wire.receive();
    for (std::size_t i = 0; i + 4 <= mbufs.size(); i += 4) {
      wire.send(mbufs[i + 1]);
      wire.send(mbufs[i]);  // after its successor
      rte_pktmbuf_free(mbufs[i + 2]);
      byte_at(mbufs[i + 3], 60) ^= 1;
      wire.send(mbufs[i + 3]);
      wire.worker().poll();
    }
  });
  const TrafficGroup::Totals totals = wire.group().totals();
  EXPECT_EQ(totals.generated.packets, 640U);
  EXPECT_EQ(totals.delivered.packets, 320U);
  EXPECT_EQ(totals.verify.missing, 320U);
  EXPECT_EQ(totals.verify.bad, 160U);
  EXPECT_EQ(totals.verify.reordered, 160U);
  EXPECT_EQ(totals.drops[static_cast<std::size_t>(Verdict::corrupt)], 160U);
  EXPECT_FALSE(totals.verify.clean());
  wire.expect_accounted();
}

/// An ARP request (RFC 826) for the generator's address is answered by its worker, in whichever role it is.
TEST(TrafficWorker, AnswersForThePortsAddress) {
  const packet::Responder responder(*parse_mac("02:00:00:00:00:99"), *parse_interface_address("10.0.0.1/24"));
  for (const auto& [sends, receives] : {std::pair{true, true}, {true, false}, {false, true}}) {
    Wire wire({.packets = 10, .sends = sends, .receives = receives, .drain = kNoDrain}, traffic_of_size("64"),
              &responder);
    const std::vector<std::uint8_t> request = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,  0, 0, 0, 0, 7, 8, 6,  // Ethernet
                                               0,    1,    8,    0,    6,    4,    0,  1, 2, 0, 0, 0, 0, 7,
                                               10,   0,    0,    2,                               // sender
                                               0,    0,    0,    0,    0,    0,    10, 0, 0, 1};  // target
    rte_mbuf* const asked = wire.new_frame(request);
    rte_mbuf* const other = wire.new_frame(std::vector<std::uint8_t>(60, 1));
    wire.send(asked);
    wire.send(other);
    wire.worker().poll();
    std::vector<std::uint8_t> reply;
    for (rte_mbuf* mbuf : wire.receive()) {
      const auto* const bytes = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
      if (bytes[12] == 8 && bytes[13] == 6) reply.assign(bytes, bytes + rte_pktmbuf_data_len(mbuf));
      rte_pktmbuf_free(mbuf);
    }
    ASSERT_EQ(reply.size(), request.size());
    EXPECT_EQ(reply[21], 2) << "an ARP reply";
    EXPECT_EQ(std::vector(reply.begin(), reply.begin() + 6), (std::vector<std::uint8_t>{2, 0, 0, 0, 0, 7}));
    EXPECT_EQ(std::vector(reply.begin() + 22, reply.begin() + 32),
              (std::vector<std::uint8_t>{2, 0, 0, 0, 0, 0x99, 10, 0, 0, 1}));
    wire.group().stop();
    wire.run([] {});
    const TrafficGroup::Totals totals = wire.group().totals();
    EXPECT_EQ(totals.replies, (Tally{1, 42}));
    EXPECT_EQ(totals.drops[static_cast<std::size_t>(receives ? Verdict::unstamped : Verdict::no_listener)], 1U);
    EXPECT_EQ(totals.rx.packets, 2U);
    RunTotals all;
    wire.group().add_to(all);
    EXPECT_TRUE(all.conserved());
  }
}

TEST(TrafficWorker, AFrameThatComesTwiceIsADuplicate) {
  Wire wire({.packets = 1, .drain = kLongDrain});
  wire.worker().poll();
  const std::vector<rte_mbuf*> mbufs = wire.receive();
  ASSERT_EQ(mbufs.size(), 1U);
  rte_mbuf* again = rte_pktmbuf_copy(mbufs[0], mbufs[0]->pool, 0, UINT32_MAX);
  wire.send(mbufs[0]);
  wire.send(again);
  wire.run([] {});
  const TrafficGroup::Totals totals = wire.group().totals();
  EXPECT_EQ(totals.verify.duplicated, 1U);
  EXPECT_EQ(totals.drops[static_cast<std::size_t>(Verdict::duplicate)], 1U);
  EXPECT_EQ(totals.delivered.packets, 1U);
  wire.expect_accounted();
}

TEST(TrafficWorker, WaitsForWhoHasHadNoTurn) {
  TurnCount near;
  near.add();
  Wire wire({.packets = 10, .passed = {&near}, .drain = kNoDrain});
  for (int i = 0; i < 1000; ++i) wire.worker().poll();
  EXPECT_FALSE(wire.worker().done());
  wire.reflect();
  wire.run([&] { near.add(); });
  EXPECT_TRUE(wire.group().totals().verify.clean());
  wire.expect_accounted();
}

TEST(TrafficWorker, DoesNotWaitForWhoHasEnded) {
  TurnCount near;
  near.add();
  near.end();
  Wire wire({.packets = 10, .passed = {&near}, .drain = kNoDrain});
  wire.run([] {});
  EXPECT_EQ(wire.group().totals().verify.missing, 10U);
  wire.expect_accounted();
}

TEST(TrafficWorker, AClosedLoopKeepsToItsWindow) {
  constexpr std::uint32_t kWindow = 100;
  Wire wire({.packets = 5000, .window = kWindow, .drain = kLongDrain});
  for (int i = 0; i < 20; ++i) wire.worker().poll();
  EXPECT_EQ(wire.group().totals().tx.packets, kWindow);
  EXPECT_EQ(wire.group().totals().stalls, 0U);
  wire.run([&] {
    wire.reflect();
    const TrafficGroup::Totals totals = wire.group().totals();
    EXPECT_LE(totals.tx.packets - totals.delivered.packets, kWindow);
  });
  EXPECT_TRUE(wire.group().totals().verify.clean());
  wire.expect_accounted();
}

TEST(TrafficWorker, AClosedLoopGoesOnAfterLosses) {
  Wire wire({.packets = 1000, .window = 64, .drain = kNoDrain});
  wire.run([&] {
    for (rte_mbuf* mbuf : wire.receive()) rte_pktmbuf_free(mbuf);
  });
  EXPECT_EQ(wire.group().totals().tx.packets, 1000U);
  EXPECT_EQ(wire.group().totals().verify.missing, 1000U);
  wire.expect_accounted();
}

TEST(TrafficWorker, WaitsWhereThePeerTakesNothing) {
  Wire wire({.packets = 1000, .drain = kLongDrain});
  for (int i = 0; i < 50; ++i) wire.worker().poll();
  const TrafficGroup::Totals stuck = wire.group().totals();
  EXPECT_LE(stuck.tx.packets, kRing);
  EXPECT_LE(stuck.unsent, kBurst);
  EXPECT_GT(stuck.stalls, 0U);
  EXPECT_EQ(stuck.generated.packets, stuck.tx.packets + stuck.unsent);
  wire.run([&] { wire.reflect(); });
  EXPECT_EQ(wire.group().totals().delivered.packets, 1000U);
  wire.expect_accounted();
}

TEST(TrafficWorker, DropsByNameWhatCannotBeSent) {
  Wire wire({.packets = 1000, .drain = kNoDrain});
  for (int i = 0; i < 50; ++i) wire.worker().poll();
  wire.group().stop();
  wire.run([] {});
  const TrafficGroup::Totals totals = wire.group().totals();
  const std::uint64_t dropped = totals.drops[static_cast<std::size_t>(Verdict::tx_full)];
  EXPECT_GT(dropped, 0U);
  EXPECT_EQ(totals.generated.packets, totals.tx.packets + dropped);
  EXPECT_EQ(totals.verify.missing, totals.tx.packets);
  wire.expect_accounted();
}

TEST(TrafficWorker, StopsWhenToldTo) {
  Wire wire({.drain = kLongDrain});
  for (int i = 0; i < 10; ++i) {
    wire.worker().poll();
    wire.reflect();
  }
  wire.group().stop();
  wire.run([&] { wire.reflect(); });
  EXPECT_GT(wire.group().totals().delivered.packets, 0U);
  EXPECT_TRUE(wire.group().totals().verify.clean());
  wire.expect_accounted();
}

TEST(TrafficWorker, AnInterruptDoesNotWaitForWhatIsLost) {
  Wire wire({.packets = 64, .drain = kLongDrain, .interrupted_drain = kNoDrain});
  for (int i = 0; i < 100; ++i) {
    wire.worker().poll();
    for (rte_mbuf* mbuf : wire.receive()) rte_pktmbuf_free(mbuf);
  }
  EXPECT_FALSE(wire.worker().done());
  wire.group().interrupt();
  wire.run([] {});
  EXPECT_EQ(wire.group().totals().verify.missing, 64U);
  wire.expect_accounted();
}

TEST(TrafficWorker, ForeignFramesDoNotKeepItFromEnding) {
  Wire wire({.packets = 64, .drain = kNoDrain});
  wire.run([&] {
    for (rte_mbuf* mbuf : wire.receive()) {
      byte_at(mbuf, 12) = 0x88;
      byte_at(mbuf, 50) ^= 1;
      wire.send(mbuf);
    }
    wire.worker().poll();
  });
  const TrafficGroup::Totals totals = wire.group().totals();
  EXPECT_EQ(totals.drops[static_cast<std::size_t>(Verdict::unstamped)], totals.rx.packets);
  wire.expect_accounted();
}

TEST(TrafficWorker, FramesMayComeBackAtAnotherWorker) {
  Wire wire({.workers = 2, .packets = 2001, .window = 64, .drain = kLongDrain});
  while (!wire.group().done()) {
    for (std::uint16_t i = 0; i < 2; ++i) {
      if (!wire.worker(i).done()) wire.worker(i).poll();
      wire.reflect(i, 1 - i);
    }
  }
  const TrafficGroup::Totals totals = wire.group().totals();
  EXPECT_EQ(totals.delivered.packets, 2001U);
  EXPECT_TRUE(totals.verify.clean());
  wire.expect_accounted();
}

TEST(TrafficWorker, TransmitsAlone) {
  Wire wire({.packets = 500, .receives = false, .drain = kLongDrain});
  wire.run([&] { wire.reflect(); });
  const TrafficGroup::Totals totals = wire.group().totals();
  EXPECT_EQ(totals.tx.packets, 500U);
  EXPECT_EQ(totals.rx.packets, 0U);
  const QueueTotals queue = wire.group().queue_totals(0);
  EXPECT_EQ(queue.tx.tally, totals.tx);
  EXPECT_GT(queue.tx.seconds, 0);
  EXPECT_EQ(queue.stalls, totals.stalls);
  EXPECT_EQ(queue.header_bytes, 42U);
  EXPECT_FALSE(queue.left_s) << "a ring does not tell";
}

TEST(TrafficWorker, ReceivesWhatAnotherSends) {
  Wire wire({.packets = 298, .sends = false, .drain = kLongDrain});
  const memory::PacketPool pool = make_test_pool(1023, 2048);
  Generator other(wire.group().plan(), 0, *pool.get());
  std::uint64_t sequence = 0;
  wire.run([&] {
    if (wire.group().done()) return;
    std::array<rte_mbuf*, 30> mbufs;
    ASSERT_EQ(other.fill(mbufs.data(), 30, 1).packets, 30);
    for (rte_mbuf* mbuf : mbufs) {
      ++sequence;
      if (sequence == 5 || sequence == 17) {
        rte_pktmbuf_free(mbuf);
      } else {
        wire.send(mbuf);
      }
    }
    EXPECT_EQ(wire.group().totals().verify.missing, 0U) << "told at the end";
  });
  const TrafficGroup::Totals totals = wire.group().totals();
  EXPECT_EQ(totals.delivered.packets, 298U);
  EXPECT_EQ(totals.generated.packets, 0U);
  EXPECT_EQ(totals.verify.missing, 2U);
  EXPECT_EQ(wire.group().through(), totals.delivered);
  const QueueTotals queue = wire.group().queue_totals(0);
  EXPECT_EQ(queue.rx.tally, totals.rx);
  EXPECT_GT(queue.rx.seconds, 0);
  EXPECT_EQ(queue.tx.tally.packets, 0U);
}

TEST(TrafficWorker, AReceiverStopsWhenToldTo) {
  Wire wire({.sends = false, .drain = kLongDrain});
  for (int i = 0; i < 10; ++i) wire.worker().poll();
  EXPECT_FALSE(wire.group().done());
  wire.group().stop();
  wire.worker().poll();
  wire.expect_accounted();
}

TEST(TrafficWorker, WorkersOnThreadsOfTheirOwn) {
  Wire wire({.workers = 2, .packets = 20'000, .window = 128, .drain = kLongDrain});
  std::thread first([&] { wire.worker(0).run(); });
  std::thread second([&] { wire.worker(1).run(); });
  while (!wire.group().done()) {
    // Each to where it came from: ThreadSanitizer does not see the order that DPDK's rings make between threads.
    for (std::uint16_t i = 0; i < 2; ++i) wire.reflect(i, i);
    EXPECT_LE(wire.group().totals().delivered.packets, 20'000U);
    std::this_thread::yield();
  }
  first.join();
  second.join();
  EXPECT_TRUE(wire.group().totals().verify.clean());
  wire.expect_accounted();
}

}  // namespace
}  // namespace warpline::traffic
