// SPDX-License-Identifier: Apache-2.0
// The consumers' kernels against the same functors on the host, on packets that are lent and on packets that are
// copied. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/handoff/gpu_engine.h"
#include "warpline/ingest/batch_slots.h"
#include "warpline/ingest/consumers/byte_sum.h"
#include "warpline/ingest/consumers/pattern_check.h"
#include "warpline/ingest/consumers/pattern_memory.h"
#include "warpline/traffic/traffic.h"

namespace warpline::ingest {
namespace {

constexpr std::uint16_t kTestBatch = 48;
constexpr std::uint32_t kTestSlots = 4;
constexpr std::uint32_t kTestBatches = 200;
constexpr std::uint32_t kTestStride = 9216;

traffic::TrafficPlan plan_for(const std::string& size, bool ipv6) {
  traffic::TrafficSettings settings;
  settings.size = size;
  settings.flows = 7;
  if (ipv6) {
    settings.src_ip = *parse_ip("2001:2::ffff");
    settings.dst_ip = *parse_ip("2001:2::1:1");
  }
  return *traffic::TrafficPlan::make(settings, 5);
}

/// A packet in a few pieces of memory, right or not.
struct Made {
  std::vector<std::uint8_t> bytes;
  std::uint32_t offset = 0;  ///< of its first byte in its place: not always a multiple of sixteen
  std::uint32_t first = 0;   ///< bytes of the first piece; 0: there is one
};

/// Packets of one stream: some twice, damaged, cut, foreign, at odd places or in two pieces.
std::vector<Made> make_packets(const traffic::TrafficPlan& plan, bool plain) {
  Random random(9);
  std::vector<Made> packets;
  for (std::uint64_t sequence = 0; packets.size() < kTestBatch * kTestBatches; ++sequence) {
    const std::uint64_t number = random.below(20) == 0 && sequence > 0 ? random.below(sequence) : sequence;
    const traffic::Stamp stamp = plan.stamp(0, number, 77);
    Made made;
    made.bytes.resize(plan.frame_bytes(plan.place(number)));
    plan.write_head(plan.place(number), stamp, made.bytes.data());
    std::copy_n(plan.pattern(stamp), made.bytes.size() - plan.head_bytes(), made.bytes.begin() + plan.head_bytes());
    if (random.below(10) == 0) made.bytes[random.below(made.bytes.size())] ^= 1U << random.below(8);
    if (random.below(40) == 0) made.bytes.resize(1 + random.below(made.bytes.size()));
    if (random.below(40) == 0) made.bytes.push_back(1);
    if (!plain && random.below(100) == 0) made.offset = static_cast<std::uint32_t>(random.below(16));
    if (!plain && random.below(100) == 0) made.first = static_cast<std::uint32_t>(1 + random.below(made.bytes.size()));
    packets.push_back(std::move(made));
  }
  return packets;
}

struct Outcome {
  std::vector<Verdict> verdicts;
  ConsumerTally tally;
};

/// What the host makes of them.
template <typename Work>
Outcome on_host(std::vector<Made> packets, Work work) {
  Outcome outcome;
  for (Made& made : packets) {
    const auto length = static_cast<std::uint32_t>(made.bytes.size());
    Segment whole{made.bytes.data(), length, 0, Verdict::forward};
    outcome.verdicts.push_back(work({&whole, 1, length}));
  }
  outcome.tally = work.tally();
  return outcome;
}

/// What a GPU makes of them: lent in pinned memory, or copied by slots.
template <typename Work>
Outcome on_gpu(const std::vector<Made>& packets, const Work& work, EngineKind kind, BatchSlots* slots) {
  auto ring = *handoff::BurstRing::create({.slots = kTestSlots, .packets = kTestBatch, .segments = 2 * kTestBatch});
  const gpu::PinnedBuffer memory =
      *gpu::PinnedBuffer::create(Bytes{std::uint64_t{kTestSlots} * kTestBatch * kTestStride});
  handoff::GpuEngineSetup setup{.kind = kind, .ctas = 3, .burst = 256, .attendant = {std::nullopt, true}};
  if (slots != nullptr) setup.ready = slots->ready_words();
  handoff::GpuEngine<Work> engine(*ring, work, setup);
  EXPECT_TRUE(engine.start().ok());
  Outcome outcome;
  std::uint32_t published = 0;
  while (outcome.verdicts.size() < packets.size() && !engine.failure()) {
    if (handoff::Burst* const burst = published < kTestBatches ? ring->acquire() : nullptr) {
      const std::uint64_t slot = ring->next_slot();
      std::size_t filled = 0;
      for (std::uint32_t i = 0; i < kTestBatch; ++i) {
        const Made& made = packets[published * kTestBatch + i];
        const auto length = static_cast<std::uint32_t>(made.bytes.size());
        if (slots != nullptr) {
          std::memcpy(slots->staging(slot) + filled, made.bytes.data(), length);
          burst->append(nullptr, reinterpret_cast<std::uint8_t*>(slots->place(slot) + filled), length);
          filled += slot_room(length);
          continue;
        }
        auto* const at =
            reinterpret_cast<std::uint8_t*>(memory.data()) + (slot * kTestBatch + i) * kTestStride + made.offset;
        std::memcpy(at, made.bytes.data(), length);
        if (made.first == 0) {
          burst->append(nullptr, at, length);
          continue;
        }
        Segment* const pieces = burst->append(nullptr, 2);
        pieces[0].data = at;
        pieces[0].length = made.first;
        pieces[1].data = at + made.first;
        pieces[1].length = length - made.first;
      }
      const std::uint64_t word = pack_ring_word(ring->next_sequence(), burst->segment_count());
      if (slots != nullptr) {
        EXPECT_TRUE(slots->submit(slot, filled, word));
      }
      ring->publish();
      engine.on_published();
      ++published;
    }
    if (const handoff::Burst* const done = ring->completed()) {
      EXPECT_EQ(done->unworked(), 0U);
      done->for_each([&](void*, Verdict verdict) { outcome.verdicts.push_back(verdict); });
      ring->release();
    }
  }
  EXPECT_EQ(engine.stop(Nanos{5'000'000'000}).bursts, 0U);
  EXPECT_FALSE(engine.failure());
  engine.for_each_worker_state([&](const Work& state) { outcome.tally.merge(state.tally()); });
  return outcome;
}

class Consumers : public ::testing::TestWithParam<std::tuple<EngineKind, std::string>> {
 protected:
  void SetUp() override {
    if (!gpu::list_gpus()) GTEST_SKIP() << "no GPU";
    ASSERT_TRUE(gpu::use_gpu(0).ok());
  }
  static EngineKind kind() { return std::get<0>(GetParam()); }
  static const std::string& size() { return std::get<1>(GetParam()); }
  static std::unique_ptr<BatchSlots> slots(bool naive = false) {
    auto made = BatchSlots::create(
        {.slots = kTestSlots, .slot_bytes = std::uint64_t{kTestBatch} * kTestStride, .gpu = 0, .naive = naive});
    EXPECT_TRUE(made.ok());
    return *std::move(made);
  }
  static void expect_same(const Outcome& gpu, const Outcome& host, bool order_matters) {
    EXPECT_EQ(gpu.tally, host.tally);
    ASSERT_EQ(gpu.verdicts.size(), host.verdicts.size());
    if (order_matters) {
      EXPECT_EQ(gpu.verdicts, host.verdicts);
      return;
    }
    // Which of two is the duplicate depends on which comes first.
    for (const Verdict verdict : {Verdict::forward, Verdict::duplicate, Verdict::corrupt, Verdict::unstamped}) {
      EXPECT_EQ(std::ranges::count(gpu.verdicts, verdict), std::ranges::count(host.verdicts, verdict)) << name(verdict);
    }
  }
};

TEST_P(Consumers, ComparePacketsAsTheHostDoes) {
  for (const bool ipv6 : {false, true}) {
    if (ipv6 && (size() == "60" || size() == "61" || size() == "64" || size() == "imix")) continue;
    const traffic::TrafficPlan plan = plan_for(size(), ipv6);
    for (const bool copies : {false, true}) {
      const std::vector<Made> packets = make_packets(plan, copies);
      const auto here = *PatternMemory::create(plan, {});
      const auto there = PatternMemory::create(plan, {.gpu = 0});
      ASSERT_TRUE(there.ok()) << there.error().message();
      const std::unique_ptr<BatchSlots> memory = copies ? slots() : nullptr;
      expect_same(on_gpu(packets, PatternCheck((*there)->source()), kind(), memory.get()),
                  on_host(packets, PatternCheck(here->source())), false);
    }
  }
}

TEST_P(Consumers, SumPacketsAsTheHostDoes) {
  const std::vector<Made> packets = make_packets(plan_for(size(), false), false);
  expect_same(on_gpu(packets, ByteSum{}, kind(), nullptr), on_host(packets, ByteSum{}), true);
  const std::vector<Made> plain = make_packets(plan_for(size(), false), true);
  for (const bool naive : {false, true}) {
    const std::unique_ptr<BatchSlots> memory = slots(naive);
    expect_same(on_gpu(plain, ByteSum{}, kind(), memory.get()), on_host(plain, ByteSum{}), true);
  }
}

INSTANTIATE_TEST_SUITE_P(, Consumers,
                         ::testing::Combine(::testing::Values(EngineKind::launch, EngineKind::graph,
                                                              EngineKind::persistent),
                                            ::testing::Values("60", "64", "61", "200", "1514", "9014", "imix")),
                         [](const auto& parameters) {
                           return std::string(name(std::get<0>(parameters.param))) + "_" +
                                  std::get<1>(parameters.param);
                         });

}  // namespace
}  // namespace warpline::ingest
