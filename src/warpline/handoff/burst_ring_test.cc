// SPDX-License-Identifier: Apache-2.0
#include "warpline/handoff/burst_ring.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "warpline/base/property_testing.h"
#include "warpline/handoff/inline_engine.h"

namespace warpline::handoff {
namespace {

std::unique_ptr<BurstRing> shaped_ring(const BurstRingShape& shape) {
  Result<std::unique_ptr<BurstRing>> ring = BurstRing::create(shape);
  EXPECT_TRUE(ring.ok());
  return *std::move(ring);
}

/// A stand-in for an mbuf: the ring only hands the pointer on.
void* packet(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

std::vector<std::pair<void*, Verdict>> contents(const Burst& burst) {
  std::vector<std::pair<void*, Verdict>> all;
  burst.for_each([&](void* p, Verdict verdict) { all.emplace_back(p, verdict); });
  return all;
}

struct ForwardAll {
  Verdict operator()(FrameRef) const { return Verdict::forward; }
};

TEST(BurstRing, RefusesShapesThatCannotBe) {
  for (const BurstRingShape shape : {BurstRingShape{0, 1, 1}, BurstRingShape{3, 1, 1}, BurstRingShape{1U << 17, 1, 1},
                                     BurstRingShape{4, 0, 1}, BurstRingShape{4, 2, 1}}) {
    const auto ring = BurstRing::create(shape);
    ASSERT_FALSE(ring.ok());
    EXPECT_EQ(ring.error().kind, ErrorKind::usage);
    EXPECT_FALSE(ring.error().why.empty());
  }
}

TEST(BurstRing, EngineRegionIsWholePagesAndHoldsAllThatAnEngineSees) {
  const auto ring = shaped_ring({8, 64, 128});
  const auto region = ring->engine_region();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(region.data()) % 4096, 0U);
  EXPECT_EQ(region.size() % 4096, 0U);
  const EngineView& view = ring->engine_view();
  const auto inside = [&](const void* first, std::size_t bytes) {
    const auto* const at = static_cast<const std::byte*>(first);
    return at >= region.data() && at + bytes <= region.data() + region.size();
  };
  EXPECT_TRUE(inside(view.stop, sizeof(RingWord)));
  EXPECT_TRUE(inside(view.ready, 8 * sizeof(RingWord)));
  EXPECT_TRUE(inside(view.done, 8 * sizeof(RingWord)));
  EXPECT_TRUE(inside(view.segments, 8 * 128 * sizeof(Segment)));
}

TEST(BurstRing, OneBurstStaysOpenUntilItIsPublished) {
  const auto ring = shaped_ring({2, 4, 8});
  Burst* const burst = ring->acquire();
  ASSERT_NE(burst, nullptr);
  EXPECT_TRUE(burst->empty());
  EXPECT_EQ(ring->acquire(), burst);
  burst->append(packet(1), nullptr, 0);
  EXPECT_EQ(ring->in_flight(), 0U);
  ring->publish();
  EXPECT_EQ(ring->in_flight(), 1U);
  EXPECT_NE(ring->acquire(), burst);
}

TEST(BurstRing, IsFullWhenAllSlotsAreInFlightAndReusesReleasedOnes) {
  const auto ring = shaped_ring({2, 1, 1});
  InlineEngine engine(*ring, ForwardAll{});
  for (std::uintptr_t i = 1; i <= 2; ++i) {
    ring->acquire()->append(packet(i), nullptr, 0);
    ring->publish();
    engine.on_published();
  }
  EXPECT_EQ(ring->acquire(), nullptr);
  ASSERT_NE(ring->completed(), nullptr);
  EXPECT_EQ(ring->completed()->packets().front(), packet(1));
  EXPECT_EQ(ring->acquire(), nullptr);
  ring->release();
  EXPECT_NE(ring->acquire(), nullptr);
}

TEST(BurstRing, RoomIsBoundByPacketsAndBySegments) {
  const auto ring = shaped_ring({1, 3, 4});
  Burst* const burst = ring->acquire();
  EXPECT_TRUE(burst->has_room(4));
  EXPECT_FALSE(burst->has_room(5));
  Segment* const pieces = burst->append(packet(1), 3);
  EXPECT_EQ(pieces[0].more, 2);
  EXPECT_EQ(pieces[1].more, 1);
  EXPECT_EQ(pieces[2].more, 0);
  EXPECT_FALSE(burst->has_room(2));
  EXPECT_TRUE(burst->has_room());
  burst->append(packet(2), nullptr, 0);
  EXPECT_FALSE(burst->has_room());
  EXPECT_EQ(burst->packet_count(), 2);
  EXPECT_EQ(burst->segment_count(), 4);

  const auto narrow = shaped_ring({1, 1, 4});
  narrow->acquire()->append(packet(1), nullptr, 0);
  EXPECT_FALSE(narrow->acquire()->has_room());
}

TEST(BurstRing, ABurstIsCompletedOnlyByItsOwnSequence) {
  const auto ring = shaped_ring({4, 1, 1});
  const EngineView& view = ring->engine_view();
  EXPECT_EQ(ring->completed(), nullptr);
  EXPECT_FALSE(view.take(1));
  for (std::uintptr_t i = 1; i <= 2; ++i) {
    ring->acquire()->append(packet(i), nullptr, 0);
    ring->publish();
  }
  EXPECT_TRUE(view.take(2));
  view.complete(2, {});
  EXPECT_EQ(ring->completed(), nullptr) << "the older burst is not done";
  view.complete(1, {});
  ASSERT_NE(ring->completed(), nullptr);
  EXPECT_EQ(ring->completed()->packets().front(), packet(1));
  ring->release();
  EXPECT_EQ(ring->completed()->packets().front(), packet(2));
}

TEST(BurstRing, PresetVerdictsAreLeftAloneAndCountAsExceptions) {
  const auto ring = shaped_ring({1, 3, 4});
  InlineEngine engine(*ring, [](FrameRef frame) { return frame.length == 0 ? Verdict::runt : Verdict::forward; });
  Burst* const burst = ring->acquire();
  burst->set_stamp(77);
  burst->append(packet(1), nullptr, 0, Verdict::reply);
  Segment* const pieces = burst->append(packet(2), 2);
  pieces[0].length = pieces[1].length = 0;
  burst->append(packet(3), nullptr, 60);
  ring->publish();
  engine.on_published();
  const Burst* const done = ring->completed();
  ASSERT_NE(done, nullptr);
  EXPECT_EQ(done->stamp(), 77U);
  EXPECT_EQ(done->exceptions(), 2);
  using Pair = std::pair<void*, Verdict>;
  EXPECT_EQ(
      contents(*done),
      (std::vector<Pair>{{packet(1), Verdict::reply}, {packet(2), Verdict::runt}, {packet(3), Verdict::forward}}));
}

TEST(BurstRing, ReclaimHandsBackWhatTheEngineLeft) {
  const auto ring = shaped_ring({4, 2, 2});
  for (std::uintptr_t i = 0; i < 3; ++i) {
    ring->acquire()->append(packet(10 + i), nullptr, 0);
    ring->acquire()->append(packet(20 + i), nullptr, 0, Verdict::reply);
    ring->publish();
  }
  ring->engine_view().complete(2, {.worked = 0, .exceptions = 1});  // another lane's burst, done before the oldest
  EXPECT_EQ(ring->completed(), nullptr);
  using Pair = std::pair<void*, Verdict>;
  for (std::uintptr_t i = 0; i < 3; ++i) {
    const Burst* const left = ring->reclaim();
    ASSERT_NE(left, nullptr);
    EXPECT_EQ(contents(*left), (std::vector<Pair>{{packet(10 + i), i == 1 ? Verdict::forward : Verdict::engine_stopped},
                                                  {packet(20 + i), Verdict::reply}}));
    EXPECT_EQ(left->exceptions(), i == 1 ? 1 : 2);
    EXPECT_EQ(left->unworked(), i == 1 ? 1 : 0);  // its lane said that it worked on none
    ring->release();
  }
  EXPECT_EQ(ring->reclaim(), nullptr);
  EXPECT_EQ(ring->in_flight(), 0U);
}

/// Random walks of producer, lanes and consumer, in any order, against a plain model. Starts anywhere, the 32-bit wrap
/// included.
WARPLINE_PROPERTY(BurstRingProperty, AnyInterleavingKeepsOrderAndLosesNothing, ()) {
  const auto slots = 1U << *rc::gen::inRange(0, 4);
  const auto first = *rc::gen::element<std::uint64_t>(1, 12345, kRingSequenceMask - 20, kRingSequenceMask);
  const auto ring = shaped_ring({slots, 5, 9, first});
  const EngineView& view = ring->engine_view();

  struct Expected {
    std::uint64_t sequence;
    std::vector<std::pair<void*, Verdict>> frames;
    bool done;
  };
  std::deque<Expected> in_flight;
  std::uint64_t sequence = first;
  std::uintptr_t number = 0;

  const auto steps = *rc::gen::container<std::vector<int>>(200, rc::gen::inRange(0, 3));
  for (const int step : steps) {
    if (step == 0) {
      Burst* const burst = ring->acquire();
      RC_ASSERT((burst == nullptr) == (in_flight.size() == slots));
      if (burst == nullptr) continue;
      Expected expected{sequence++, {}, false};
      const int wanted = *rc::gen::inRange(1, 6);
      for (int i = 0; i < wanted; ++i) {
        const auto segments = *rc::gen::inRange<std::uint16_t>(1, 4);
        if (!burst->has_room(segments)) break;
        Segment* const pieces = burst->append(packet(++number), segments);
        for (std::uint16_t s = 0; s < segments; ++s) pieces[s].length = static_cast<std::uint32_t>(number % 7);
        expected.frames.emplace_back(packet(number), Verdict::forward);
      }
      ring->publish();
      in_flight.push_back(expected);
    } else if (step == 1) {
      std::vector<std::size_t> open;
      for (std::size_t i = 0; i < in_flight.size(); ++i) {
        if (!in_flight[i].done) open.push_back(i);
      }
      RC_ASSERT(!view.take(sequence));
      if (open.empty()) continue;
      Expected& chosen = in_flight[*rc::gen::elementOf(open)];
      const BurstView burst = view.take(chosen.sequence);
      RC_ASSERT(static_cast<bool>(burst));
      auto work = [](FrameRef frame) { return frame.segments[0].length == 0 ? Verdict::runt : Verdict::forward; };
      const BurstCounts counts = work_burst(burst, work);
      RC_ASSERT(counts.worked == chosen.frames.size());
      for (auto& [pointer, verdict] : chosen.frames) {
        if (reinterpret_cast<std::uintptr_t>(pointer) % 7 == 0) verdict = Verdict::runt;
      }
      view.complete(chosen.sequence, counts);
      chosen.done = true;
    } else {
      const Burst* const done = ring->completed();
      RC_ASSERT((done != nullptr) == (!in_flight.empty() && in_flight.front().done));
      if (done == nullptr) continue;
      const bool same = contents(*done) == in_flight.front().frames;
      RC_ASSERT(same);
      std::uint16_t exceptions = 0;
      for (const auto& frame : in_flight.front().frames) exceptions += frame.second != Verdict::forward;
      RC_ASSERT(done->exceptions() == exceptions);
      RC_ASSERT(done->unworked() == 0);
      ring->release();
      in_flight.pop_front();
    }
    RC_ASSERT(ring->in_flight() == in_flight.size());
  }
}

TEST(BurstRingTest, PairsAppendedInARunAreWorkedOnAsFramesOfTwo) {
  const std::unique_ptr<BurstRing> ring = shaped_ring({.slots = 2, .packets = 4, .segments = 8});
  std::uint8_t bytes[8]{};
  Burst* const burst = ring->acquire();
  for (std::uintptr_t i = 0; i < 3; ++i) burst->tail()[i] = packet(i + 1);
  const std::uint16_t taken = burst->append_pairs(3, [&](void* p, Segment& first, Segment& second) {
    if (p == packet(3)) return false;
    first.data = bytes;
    first.length = 3;
    second.data = bytes + 3;
    second.length = 5;
    return true;
  });
  EXPECT_EQ(taken, 2);
  EXPECT_EQ(burst->packet_count(), 2);
  EXPECT_EQ(burst->segment_count(), 4);
  burst->append(packet(3), bytes, 8);
  EXPECT_EQ(burst->segment_count(), 5);
  EXPECT_EQ(contents(*burst),
            (std::vector<std::pair<void*, Verdict>>{
                {packet(1), Verdict::forward}, {packet(2), Verdict::forward}, {packet(3), Verdict::forward}}));
}

}  // namespace
}  // namespace warpline::handoff
