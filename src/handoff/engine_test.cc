// SPDX-License-Identifier: Apache-2.0
// Both engines against the same streams of random bursts, with a producer and a consumer thread of their own.
#include "handoff/engine.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <rapidcheck/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "handoff/burst_ring.h"
#include "handoff/inline_engine.h"
#include "handoff/thread_engine.h"

namespace warpline {
namespace {

constexpr std::uint16_t kMaxPieces = 3;

/// A frame of up to three pieces; what the work should find and leave is worked out from `number`.
struct Packet {
  std::uint32_t number = 0;
  std::uint16_t pieces = 1;
  std::array<std::uint8_t, kMaxPieces> bytes{};  ///< one a piece, each counts how often the work saw it

  [[nodiscard]] Verdict preset() const { return number % 5 == 0 ? Verdict::reply : Verdict::forward; }
  [[nodiscard]] Verdict expected() const {
    if (preset() != Verdict::forward) return preset();
    return pieces == 2 ? Verdict::giant : Verdict::forward;
  }
};

/// Touches every piece once, drops frames of two pieces.
struct Touch {
  std::uint64_t frames = 0;
  Verdict operator()(FrameRef frame) {
    ++frames;
    for (std::uint16_t i = 0; i < frame.count; ++i) ++*frame.segments[i].data;
    return frame.length == 2 ? Verdict::giant : Verdict::forward;
  }
};

struct Stream {
  std::vector<Packet> packets;
  std::vector<std::uint16_t> bursts;  ///< packets each; they add up to all packets
};

Stream make_stream(const std::vector<std::uint16_t>& bursts, std::uint64_t seed) {
  Stream stream{{}, bursts};
  stream.packets.resize(std::accumulate(bursts.begin(), bursts.end(), std::size_t{0}));
  std::uint32_t number = 0;
  for (Packet& packet : stream.packets) {
    packet.number = number++;
    packet.pieces = static_cast<std::uint16_t>(1 + (seed + std::uint64_t{packet.number} * 7U) % 11U % kMaxPieces);
  }
  return stream;
}

template <typename E>
void produce(BurstRing& ring, E& engine, Stream& stream) {
  Packet* next = stream.packets.data();
  for (const std::uint16_t size : stream.bursts) {
    Burst* burst = ring.acquire();
    while (burst == nullptr) {
      std::this_thread::yield();
      burst = ring.acquire();
    }
    for (std::uint16_t i = 0; i < size; ++i, ++next) {
      if (next->pieces == 1) {
        burst->append(next, next->bytes.data(), 1, next->preset());
        continue;
      }
      Segment* const segments = burst->append(next, next->pieces, next->preset());
      for (std::uint16_t s = 0; s < next->pieces; ++s) {
        segments[s].data = &next->bytes[s];
        segments[s].length = 1;
      }
    }
    ring.publish();
    engine.on_published();
  }
}

/// What came out, in order: packet number and verdict.
struct Received {
  std::uint32_t number;
  Verdict verdict;
};

std::vector<Received> consume(BurstRing& ring, std::size_t bursts) {
  std::vector<Received> received;
  for (std::size_t i = 0; i < bursts; ++i) {
    const Burst* burst = ring.completed();
    while (burst == nullptr) {
      std::this_thread::yield();
      burst = ring.completed();
    }
    std::uint16_t exceptions = 0;
    burst->for_each([&](void* packet, Verdict verdict) {
      received.push_back({static_cast<Packet*>(packet)->number, verdict});
      exceptions = static_cast<std::uint16_t>(exceptions + (verdict != Verdict::forward));
    });
    EXPECT_EQ(burst->exceptions(), exceptions);
    ring.release();
  }
  return received;
}

/// Sends the stream through and says whether every packet came out once, in order, touched once and rightly judged.
template <typename E>
void expect_all_through(BurstRing& ring, E& engine, Stream& stream) {
  ASSERT_TRUE(engine.start().ok());
  std::thread producer([&] { produce(ring, engine, stream); });
  const std::vector<Received> received = consume(ring, stream.bursts.size());
  producer.join();
  EXPECT_EQ(engine.stop(Nanos{0}).bursts, 0U);

  ASSERT_EQ(received.size(), stream.packets.size());
  std::uint64_t worked = 0;
  for (std::size_t i = 0; i < received.size(); ++i) {
    const Packet& packet = stream.packets[i];
    ASSERT_EQ(received[i].number, packet.number);
    ASSERT_EQ(received[i].verdict, packet.expected());
    const bool touched = packet.preset() == Verdict::forward;
    worked += touched;
    for (std::uint16_t s = 0; s < kMaxPieces; ++s) ASSERT_EQ(packet.bytes[s], touched && s < packet.pieces ? 1 : 0);
  }

  std::uint64_t frames = 0;
  engine.for_each_worker_state([&](const Touch& touch) { frames += touch.frames; });
  EXPECT_EQ(frames, worked);
  std::uint64_t bursts = 0;
  std::uint64_t packets = 0;
  for (std::uint32_t lane = 0; lane < engine.lanes(); ++lane) {
    const LaneCounters& counters = engine.counters(lane);
    bursts += counters.bursts.get();
    packets += counters.packets.get();
    EXPECT_LE(counters.sampled_packets.get(), counters.packets.get());
    EXPECT_EQ(counters.sampled_packets.get() > 0, counters.bursts.get() > 0);
  }
  EXPECT_EQ(bursts, stream.bursts.size());
  EXPECT_EQ(packets, stream.packets.size());
}

std::unique_ptr<BurstRing> make_ring(std::uint32_t slots, std::uint16_t packets, std::uint64_t first = 1) {
  const auto segments = static_cast<std::uint16_t>(packets * kMaxPieces);
  Result<std::unique_ptr<BurstRing>> ring = BurstRing::create({slots, packets, segments, first});
  EXPECT_TRUE(ring.ok());
  return *std::move(ring);
}

std::vector<LanePlacement> unpinned(std::size_t lanes) { return {lanes, {std::nullopt, true}}; }

static_assert(Engine<InlineEngine<Touch>> && Engine<ThreadEngine<Touch>>);

RC_GTEST_PROP(EngineProperty, EveryPacketOnceInOrderWithItsVerdict, ()) {
  const auto slots = 1U << *rc::gen::inRange(0, 5);
  const auto lanes = *rc::gen::inRange<std::size_t>(0, 5);  // 0: inline
  const auto bursts = *rc::gen::container<std::vector<std::uint16_t>>(*rc::gen::inRange<std::size_t>(1, 300),
                                                                      rc::gen::inRange<std::uint16_t>(1, 40));
  const auto first = *rc::gen::element<std::uint64_t>(1, kRingSequenceMask - 30);
  Stream stream = make_stream(bursts, *rc::gen::arbitrary<std::uint64_t>());
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
  Stream stream = make_stream({2048, 1, 4096, 33, 1025}, 3);
  const auto ring = make_ring(4, 4096);
  ThreadEngine engine(*ring, Touch{}, unpinned(2), "lane");
  expect_all_through(*ring, engine, stream);
}

// A flag alone cannot tell a slot's new burst from the one a round before; a sequence can, after any number of rounds.
TEST(Engines, SmallRingsThatWrapThousandsOfTimes) {
  for (const std::uint32_t slots : {1U, 2U, 4U}) {
    Stream stream = make_stream(std::vector<std::uint16_t>(5000, 2), slots);
    const auto ring = make_ring(slots, 2);
    ThreadEngine engine(*ring, Touch{}, unpinned(3), "lane");
    expect_all_through(*ring, engine, stream);
  }
}

TEST(ThreadEngineStop, DrainsWhatWasPublished) {
  Stream stream = make_stream(std::vector<std::uint16_t>(16, 8), 1);
  const auto ring = make_ring(16, 8);
  ThreadEngine engine(*ring, Touch{}, unpinned(3), "lane");
  ASSERT_TRUE(engine.start().ok());
  produce(*ring, engine, stream);
  EXPECT_EQ(engine.stop(Nanos{60'000'000'000}).bursts, 0U);
  EXPECT_EQ(consume(*ring, 16).size(), stream.packets.size());
}

TEST(ThreadEngineStop, ReportsWhatItLeavesAndNeverHalfABurst) {
  Stream stream = make_stream(std::vector<std::uint16_t>(8, 4), 1);
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
}  // namespace warpline
