// SPDX-License-Identifier: Apache-2.0
// What the hand-over itself costs: ring operations on one thread, and a burst's way through each engine.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "warpline/handoff/burst_ring.h"
#include "warpline/handoff/inline_engine.h"
#include "warpline/handoff/thread_engine.h"

namespace warpline::handoff {
namespace {

constexpr std::uint32_t kSlots = 16;
constexpr std::uint16_t kBurst = 64;
constexpr std::uint32_t kFrame = 64;

struct ForwardAll {
  Verdict operator()(FrameRef) const { return Verdict::forward; }
};

struct TouchFirstByte {
  Verdict operator()(FrameRef frame) const {
    ++*frame.data();
    return Verdict::forward;
  }
};

/// Packets enough for all slots, each on its own lines.
struct Frames {
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(std::size_t{kSlots} * kBurst * kFrame);
  std::uint32_t next = 0;

  void fill(Burst& burst, std::uint16_t count) {
    for (std::uint16_t i = 0; i < count; ++i) {
      std::uint8_t* const frame = bytes.data() + std::size_t{next} * kFrame;
      next = (next + 1) % (kSlots * kBurst);
      burst.append(frame, frame, kFrame);
    }
  }
};

std::unique_ptr<BurstRing> make_ring() { return *BurstRing::create({kSlots, kBurst, kBurst}); }

void report(benchmark::State& state, std::uint64_t packets) {
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
}

/// Fill, publish, work and consume on one thread: the cost of the ring with every line in the cache.
template <typename Work>
void BM_InlineEngine(benchmark::State& state) {
  const auto count = static_cast<std::uint16_t>(state.range(0));
  const auto ring = make_ring();
  InlineEngine engine(*ring, Work{});
  Frames frames;
  std::uint64_t packets = 0;
  for (auto _ : state) {
    frames.fill(*ring->acquire(), count);
    ring->publish();
    engine.on_published();
    const Burst* const done = ring->completed();
    benchmark::DoNotOptimize(done->exceptions());
    packets += done->packet_count();
    ring->release();
  }
  report(state, packets);
}
BENCHMARK(BM_InlineEngine<ForwardAll>)->Arg(1)->Arg(32)->Arg(64);
BENCHMARK(BM_InlineEngine<TouchFirstByte>)->Arg(64);

/// One thread produces and consumes, `lanes` others work, with as many bursts in flight as the ring has slots.
void BM_ThreadEngine(benchmark::State& state) {
  const auto count = static_cast<std::uint16_t>(state.range(0));
  const auto lanes = static_cast<std::size_t>(state.range(1));
  const bool shared = std::thread::hardware_concurrency() <= lanes;
  const auto ring = make_ring();
  ThreadEngine engine(*ring, TouchFirstByte{}, std::vector<LanePlacement>(lanes, {std::nullopt, shared}), "lane");
  if (!engine.start()) return state.SkipWithError("the engine does not start");
  Frames frames;
  std::uint64_t packets = 0;
  for (auto _ : state) {
    while (Burst* const burst = ring->acquire()) {
      frames.fill(*burst, count);
      ring->publish();
      engine.on_published();
    }
    const Burst* done = ring->completed();
    while (done == nullptr) {
      lane_idle(shared);
      done = ring->completed();
    }
    packets += done->packet_count();
    ring->release();
  }
  report(state, packets);
  if (engine.stop(Nanos{1'000'000'000}).bursts != 0) state.SkipWithError("the engine left bursts");
}
BENCHMARK(BM_ThreadEngine)->ArgsProduct({{1, 32, 64}, {1, 2}})->UseRealTime();

}  // namespace
}  // namespace warpline::handoff
