// SPDX-License-Identifier: Apache-2.0
// Both engines against the same streams of random bursts, with a producer and a consumer thread of their own.
#include "warpline/handoff/engine.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "warpline/base/property_testing.h"
#include "warpline/handoff/burst_ring.h"
#include "warpline/handoff/engine_testing.h"
#include "warpline/handoff/inline_engine.h"
#include "warpline/handoff/thread_engine.h"

namespace warpline::handoff {
namespace {

using namespace testing;

std::vector<LanePlacement> unpinned(std::size_t lanes) { return {lanes, {std::nullopt, true}}; }

static_assert(Engine<InlineEngine<Touch>> && Engine<ThreadEngine<Touch>>);

WARPLINE_PROPERTY(EngineProperty, EveryPacketOnceInOrderWithItsVerdict, ()) {
  const auto slots = 1U << *rc::gen::inRange(0, 5);
  const auto lanes = *rc::gen::inRange<std::size_t>(0, 5);  // 0: inline
  const auto bursts = *rc::gen::container<std::vector<std::uint16_t>>(*rc::gen::inRange<std::size_t>(1, 300),
                                                                      rc::gen::inRange<std::uint16_t>(1, 40));
  const auto first = *rc::gen::element<std::uint64_t>(1, kRingSequenceMask - 30);
  PacketStream stream = make_stream(bursts, *rc::gen::arbitrary<std::uint64_t>());
  const auto ring = make_ring(slots, 40, first);
  if (lanes == 0) {
    InlineEngine engine(*ring, Touch{});
    expect_all_through(*ring, engine, stream);
  } else {
    ThreadEngine engine(*ring, Touch{}, unpinned(lanes), "lane");
    expect_all_through(*ring, engine, stream);
  }
}

// A kernel that gives each packet one of its threads drops the rest of a burst larger than itself. No such bound here.
TEST(Engines, BurstsLargerThanAnyBlockOfThreads) {
  PacketStream stream = make_stream({2048, 1, 4096, 33, 1025}, 3);
  const auto ring = make_ring(4, 4096);
  ThreadEngine engine(*ring, Touch{}, unpinned(2), "lane");
  expect_all_through(*ring, engine, stream);
}

// A flag alone cannot tell a slot's new burst from the one a round before; a sequence can, after any number of rounds.
TEST(Engines, SmallRingsThatWrapThousandsOfTimes) {
  for (const std::uint32_t slots : {1U, 2U, 4U}) {
    PacketStream stream = make_stream(std::vector<std::uint16_t>(5000, 2), slots);
    const auto ring = make_ring(slots, 2);
    ThreadEngine engine(*ring, Touch{}, unpinned(3), "lane");
    expect_all_through(*ring, engine, stream);
  }
}

TEST(ThreadEngineStop, DrainsWhatWasPublished) {
  PacketStream stream = make_stream(std::vector<std::uint16_t>(16, 8), 1);
  const auto ring = make_ring(16, 8);
  ThreadEngine engine(*ring, Touch{}, unpinned(3), "lane");
  ASSERT_TRUE(engine.start().ok());
  produce(*ring, engine, stream);
  EXPECT_EQ(engine.stop(Nanos{60'000'000'000}).bursts, 0U);
  EXPECT_EQ(consume(*ring, 16).size(), stream.packets.size());
}

TEST(ThreadEngineStop, ReportsWhatItLeavesAndNeverHalfABurst) {
  PacketStream stream = make_stream(std::vector<std::uint16_t>(8, 4), 1);
  const auto ring = make_ring(8, 4);
  const EngineView view = ring->engine_view();
  std::atomic<bool> busy{false};
  const auto until_now = [view, &busy](FrameRef) {
    busy.store(true);
    while (view.stop_requested() != RingStop::now) std::this_thread::yield();
    return Verdict::forward;
  };
  ThreadEngine engine(*ring, until_now, unpinned(1), "lane");
  ASSERT_TRUE(engine.start().ok());
  produce(*ring, engine, stream);
  while (!busy.load()) std::this_thread::yield();
  EXPECT_EQ(engine.stop(Nanos{0}).bursts, 7U);

  EXPECT_EQ(consume(*ring, 1).size(), 4U);
  EXPECT_EQ(ring->completed(), nullptr);
  std::size_t stopped = 0;
  while (const Burst* left = ring->reclaim()) {
    left->for_each([&](void* packet, Verdict verdict) {
      const Verdict preset = static_cast<Packet*>(packet)->preset();
      EXPECT_EQ(verdict, preset == Verdict::forward ? Verdict::engine_stopped : preset);
      ++stopped;
    });
    ring->release();
  }
  EXPECT_EQ(stopped, 28U);
  EXPECT_EQ(ring->in_flight(), 0U);
}

TEST(Engines, OneFrameOfAMillionThatIsSkippedIsSeen) {
  std::vector<std::uint8_t> packets(kMillion);
  expect_skip_is_seen(
      packets, [](BurstRing& ring, SkipOne work) { return std::make_unique<InlineEngine<SkipOne>>(ring, work); });
  std::vector<std::uint8_t> more(kMillion);
  expect_skip_is_seen(more, [](BurstRing& ring, SkipOne work) {
    return std::make_unique<ThreadEngine<SkipOne>>(ring, work, unpinned(3), "lane");
  });
}

// Who works in the stead of an engine that failed leaves alone what was done, and never guesses at the rest.
/// Work that counts the calls between bursts.
struct BetweenBursts {
  std::atomic<int>* calls;
  Verdict operator()(FrameRef /*frame*/) const { return Verdict::forward; }
  void idle() const { calls->fetch_add(1); }
  void merge(const BetweenBursts& /*other*/) {}
};

TEST(ThreadEngineIdle, CallsWorkBetweenBursts) {
  std::atomic<int> calls = 0;
  const auto ring = make_ring(8, 4);
  ThreadEngine engine(*ring, BetweenBursts{&calls}, unpinned(1), "lane");
  ASSERT_TRUE(engine.start().ok());
  while (calls == 0) std::this_thread::yield();
  engine.stop(Nanos{0});
  InlineEngine own(*ring, BetweenBursts{&calls});
  const int before = calls;
  own.on_idle();
  EXPECT_EQ(calls, before + 1);
}

TEST(FailUndone, CompletesWhatIsPublishedAndNotDone) {
  for (const std::uint64_t first : {std::uint64_t{1}, kRingSequenceMask - 5}) {
    PacketStream stream = make_stream(std::vector<std::uint16_t>(11, 4), 1);
    const auto ring = make_ring(8, 4, first);
    const EngineView view = ring->engine_view();
    InlineEngine engine(*ring, Touch{});
    PacketStream before{{stream.packets.begin(), stream.packets.begin() + 12}, {4, 4, 4}};
    produce(*ring, engine, before);
    EXPECT_EQ(consume(*ring, 3).size(), 12U);

    struct Nobody {
      void on_published() {}
    } nobody;
    PacketStream after{{stream.packets.begin() + 12, stream.packets.end()}, std::vector<std::uint16_t>(8, 4)};
    produce(*ring, nobody, after);
    Touch touch;
    view.complete(first + 5, work_burst(view.take(first + 5), touch));
    EXPECT_EQ(ring->undone(), 7U);
    fail_undone(view, first + 11, Verdict::engine_stopped);
    EXPECT_EQ(ring->undone(), 0U);
    for (const Received& received : consume(*ring, 8)) {
      const Packet& packet = stream.packets[received.number];
      const bool done = received.number / 4 == 5;
      const Verdict left = packet.preset() == Verdict::forward ? Verdict::engine_stopped : packet.preset();
      EXPECT_EQ(received.verdict, done ? packet.expected() : left);
    }
  }
}

// The ring goes on with another engine, whatever the first one still writes into what it sees.
TEST(BurstRingRenewal, AnotherEngineWorksOn) {
  PacketStream stream = make_stream(std::vector<std::uint16_t>(40, 4), 1);
  const auto ring = make_ring(8, 4);
  const EngineView abandoned = ring->engine_view();
  struct Nobody {
    void on_published() {}
  } nobody;
  PacketStream lost{{stream.packets.begin(), stream.packets.begin() + 12}, {4, 4, 4}};
  produce(*ring, nobody, lost);
  Burst* const open = ring->acquire();  // begun before, so still the first engine's
  open->append(&stream.packets[12], stream.packets[12].bytes.data(), 1);

  const EngineView view = ring->renew();
  EXPECT_EQ(ring->acquire(), open);
  ring->publish();
  EXPECT_EQ(ring->renewed_from(), UINT64_MAX);
  PacketStream rest{{stream.packets.begin() + 16, stream.packets.end()}, std::vector<std::uint16_t>(36, 4)};
  std::vector<Received> received;
  std::thread producer([&] { produce(*ring, nobody, rest); });
  while (ring->renewed_from() == UINT64_MAX) std::this_thread::yield();
  EXPECT_EQ(ring->renewed_from(), 5U);
  fail_undone(abandoned, ring->renewed_from(), Verdict::engine_hung);
  std::thread lane([&] {
    Touch touch;
    LaneCounters counters;
    drain_ring(view, {ring->renewed_from(), 1}, touch, counters, true);
  });
  received = consume(*ring, 20);
  for (std::uint64_t sequence = 1; sequence < 5; ++sequence)
    abandoned.complete(sequence, {.worked = 0, .exceptions = 4});
  for (Segment* late = abandoned.segments; late < abandoned.segments + 4; ++late) late->verdict = Verdict::giant;
  for (const Received& more : consume(*ring, 20)) received.push_back(more);
  producer.join();
  view.request_stop(RingStop::drain);
  lane.join();

  ASSERT_EQ(received.size(), 12U + 1 + 36 * 4);
  for (std::size_t i = 0; i < received.size(); ++i) {
    const Packet& packet = stream.packets[received[i].number];
    const bool hung = i < 13 && packet.preset() == Verdict::forward;
    EXPECT_EQ(received[i].verdict, hung ? Verdict::engine_hung : i == 12 ? Verdict::engine_hung : packet.expected());
  }
  EXPECT_EQ(ring->in_flight(), 0U);
}

TEST(ThreadEngineStop, BeforeStartAndTwice) {
  const auto ring = make_ring(1, 1);
  ThreadEngine engine(*ring, Touch{}, unpinned(1), "lane");
  EXPECT_EQ(engine.stop(Nanos{0}).bursts, 0U);
  EXPECT_EQ(engine.stop(Nanos{0}).bursts, 0U);
}

TEST(ThreadEngineStart, PinsAndNamesItsLanes) {
  const auto ring = make_ring(1, 1);
  const int here = sched_getcpu();
  ASSERT_GE(here, 0);
  struct Where {
    int cpu = -1;
    std::array<char, 16> name{};
    Verdict operator()(FrameRef) {
      cpu = sched_getcpu();
      pthread_getname_np(pthread_self(), name.data(), name.size());
      return Verdict::forward;
    }
  };
  ThreadEngine engine(*ring, Where{}, {{static_cast<unsigned>(here), true}}, "a-rather-long-name");
  ASSERT_TRUE(engine.start().ok());
  std::uint8_t byte = 0;
  ring->acquire()->append(nullptr, &byte, 1);
  ring->publish();
  EXPECT_EQ(engine.stop(Nanos{60'000'000'000}).bursts, 0U);
  engine.for_each_worker_state([&](const Where& where) {
    EXPECT_EQ(where.cpu, here);
    EXPECT_EQ(std::string(where.name.data()), "a-rather-long-n");
  });
}

TEST(ThreadEngineStart, RefusesACpuThatIsNotThere) {
  const auto ring = make_ring(1, 1);
  ThreadEngine engine(*ring, Touch{}, {{std::nullopt, true}, {100'000U, true}}, "lane");
  const Result<void> started = engine.start();
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().kind, ErrorKind::environment);
  EXPECT_NE(started.error().what.find("CPU 100000"), std::string::npos);
}

}  // namespace
}  // namespace warpline::handoff
