// SPDX-License-Identifier: Apache-2.0
// Frames in a GPU's memory against those of the host: every engine, packets that are lent and packets that are copied.
// Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/flow/frame_gpu.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/handoff/gpu_engine.h"
#include "warpline/ingest/batch_slots.h"
#include "warpline/ingest/frames/gpu_frames.h"
#include "warpline/ingest/frames/gpu_frames_testing.h"

namespace warpline::ingest {
namespace {

FrameTotals frames_on_gpu(const flow::FrameDescription& description, const std::vector<Arrived>& packets,
                          EngineKind kind, BatchSlots* slots, Random& random) {
  constexpr std::uint16_t kDescriptors = 2 * kFrameBurst;
  auto ring = *handoff::BurstRing::create({.slots = kFrameSlots, .packets = kFrameBurst, .segments = kDescriptors});
  const gpu::PinnedBuffer memory =
      *gpu::PinnedBuffer::create(Bytes{std::uint64_t{kFrameSlots} * kFrameBurst * kFrameStride});
  auto frames = GpuFrames::create(description, least_memory(description, kDescriptors),
                                  {.gpu = 0, .batch = kDescriptors, .first_sequence = 1});
  EXPECT_TRUE(frames.ok()) << frames.error().message();
  handoff::GpuEngineSetup setup{.kind = kind,
                                .ctas = 1,
                                .burst = flow::kFrameThreads,
                                .threads = flow::kFrameThreads,
                                .attendant = {std::nullopt, true}};
  if (slots != nullptr) {
    setup.ready = slots->ready_words();
    setup.pull = slots->pull();
  }
  handoff::GpuEngine<AssembleOnGpu> engine(*ring, (*frames)->work(), setup);
  EXPECT_TRUE(engine.start().ok());
  pass_packets(*ring, engine, packets, slots, memory.data(), random);
  EXPECT_EQ(engine.stop(Nanos{5'000'000'000}).bursts, 0U);
  EXPECT_FALSE(engine.failure());
  const Result<FrameTotals> totals = (*frames)->end();
  EXPECT_TRUE(totals.ok()) << totals.error().message();
  return totals.ok() ? *totals : FrameTotals{};
}

class GpuFramesTest : public ::testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override {
    if (!gpu::list_gpus()) GTEST_SKIP() << "no GPU";
    ASSERT_TRUE(gpu::use_gpu(0).ok());
  }

  /// `copies`: how packets get to the GPU's memory; null: they do not.
  static void expect_as_on_host(std::uint64_t seed, const BatchSlotsShape* copies) {
    Random random(seed);
    const std::string text = random_frames(random);
    SCOPED_TRACE(text);
    const flow::FrameDescription description = *flow::parse_frame_description(text);
    const std::vector<Arrived> packets = arrive(description, random);
    std::unique_ptr<BatchSlots> slots;
    if (copies != nullptr) slots = *BatchSlots::create(*copies);
    const FrameTotals there = frames_on_gpu(description, packets, GetParam(), slots.get(), random);
    const FrameTotals here = frames_on_host(description, packets);
    EXPECT_EQ(there.consumed, here.consumed);
    EXPECT_EQ(std::memcmp(&there.counts, &here.counts, sizeof(here.counts)), 0);
    for (std::size_t i = 0; i < flow::kPlacements; ++i) {
      EXPECT_EQ(there.counts.placements[i], here.counts.placements[i]) << flow::name(static_cast<flow::Placement>(i));
    }
    EXPECT_EQ(there.counts.complete, here.counts.complete);
    EXPECT_EQ(there.counts.incomplete, here.counts.incomplete);
    EXPECT_GT(here.consumed.packets, 0U);
  }

  static constexpr BatchSlotsShape kCopied{
      .slots = kFrameSlots, .slot_bytes = std::uint64_t{kFrameBurst} * kFrameStride, .gpu = 0};
};

TEST_P(GpuFramesTest, OfPacketsInPinnedMemoryAreTheHosts) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) expect_as_on_host(seed, nullptr);
}

TEST_P(GpuFramesTest, OfCopiedPacketsAreTheHosts) {
  for (std::uint64_t seed = 100; seed < 106; ++seed) expect_as_on_host(seed, &kCopied);
}

TEST_P(GpuFramesTest, OfPacketsCopiedNaivelyAreTheHosts) {
  BatchSlotsShape naive = kCopied;
  naive.naive = true;
  for (std::uint64_t seed = 200; seed < 204; ++seed) expect_as_on_host(seed, &naive);
}

TEST_P(GpuFramesTest, OfPacketsThatTheKernelPullsAreTheHosts) {
  if (GetParam() != EngineKind::persistent) GTEST_SKIP() << "launched kernels have streams for that";
  BatchSlotsShape pulled = kCopied;
  pulled.pulled = true;
  for (std::uint64_t seed = 300; seed < 306; ++seed) expect_as_on_host(seed, &pulled);
}

TEST_P(GpuFramesTest, TakeNoMoreThanTheirMemoryAndSaySo) {
  const flow::FrameDescription description = *flow::parse_frame_description("packets=64,seq=0:64,payload=8:1024");
  const Bytes least = least_memory(description, kFrameBurst);
  const auto frames = GpuFrames::create(description, least, {.batch = kFrameBurst});
  ASSERT_TRUE(frames.ok()) << frames.error().message();
  EXPECT_LE((*frames)->gpu_bytes(), least);
  const auto refused = GpuFrames::create(description, Bytes{least.value - 4096}, {.batch = kFrameBurst});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
}

INSTANTIATE_TEST_SUITE_P(, GpuFramesTest,
                         ::testing::Values(EngineKind::launch, EngineKind::graph, EngineKind::persistent),
                         [](const auto& kind) { return std::string(name(kind.param)); });

}  // namespace
}  // namespace warpline::ingest
