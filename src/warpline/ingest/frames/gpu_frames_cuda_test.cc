// SPDX-License-Identifier: Apache-2.0
// Frames in a GPU's memory against those of the host: every engine, packets that are lent and packets that are copied.
// Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/flow/batch_testing.h"
#include "warpline/flow/frame_gpu.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/handoff/gpu_engine.h"
#include "warpline/ingest/batch_slots.h"
#include "warpline/ingest/frames/gpu_frames.h"
#include "warpline/ingest/frames/host_frames.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::ingest {
namespace {

constexpr std::uint16_t kFrameBurst = 96;
constexpr std::uint32_t kFrameSlots = 4;
constexpr std::uint32_t kFrameStride = 256;

/// A packet as it arrives, cut in two pieces after `first` bytes or whole, and dropped before or not.
struct Arrived {
  packet::FrameBytes bytes;
  std::uint32_t first = 0;
  Verdict preset = Verdict::forward;
};

/// Packets of three streams that are lost, doubled, late, damaged and begin anew, with some that are none of theirs.
std::vector<Arrived> arrive(const flow::FrameDescription& description, Random& random) {
  std::vector<std::vector<std::int64_t>> sources;
  const std::uint64_t faults = 7 + random.below(80);
  for (int i = 0; i < 3; ++i) sources.push_back(flow::arrivals(random, 900, faults));
  std::vector<std::size_t> next(sources.size(), 0);
  std::vector<Arrived> packets;
  for (int i = 0; i < 2500; ++i) {
    const auto key = static_cast<std::uint32_t>(random.below(sources.size()));
    if (next[key] == sources[key].size()) continue;
    packet::FrameBytes datagram = flow::numbered_packet(description, key, sources[key][next[key]++]);
    if (random.below(60) == 0) datagram.resize(random.below(datagram.size()) + 1);
    Arrived arrived{.bytes = packet::ipv4_frame(17, packet::udp_datagram(datagram))};
    if (random.below(100) == 0) arrived.bytes = packet::ipv4_frame(6, packet::tcp_segment(datagram));
    if (random.below(5) == 0) arrived.first = static_cast<std::uint32_t>(1 + random.below(arrived.bytes.size() - 1));
    if (random.below(80) == 0) arrived.preset = Verdict::runt;
    packets.push_back(std::move(arrived));
  }
  return packets;
}

/// The least memory that the frames of a description fit into: a batch then has to wait for its own frames.
Bytes least_memory(const flow::FrameDescription& description, std::uint32_t batch) {
  const flow::FramePlan plan = *flow::make_frame_plan(description, flow::PacketForm::ethernet);
  Bytes memory{4096};
  while (!flow::FrameLayout::fit(plan, memory, batch)) memory.value += 4096;
  return {memory.value + flow::FrameLayout::kAlignment};
}

FrameTotals frames_on_host(const flow::FrameDescription& description, const std::vector<Arrived>& packets) {
  const auto frames = *HostFrames::create(description, Bytes{4U << 20});
  for (const Arrived& arrived : packets) {
    packet::SegmentedFrame packet(arrived.bytes);
    if (arrived.preset == Verdict::forward) frames->take(packet.ref());
  }
  return *frames->end();
}

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
  std::size_t published = 0;
  std::size_t done = 0;
  while (done < packets.size() && !engine.failure()) {
    if (handoff::Burst* const burst = published < packets.size() ? ring->acquire() : nullptr) {
      const std::uint64_t slot = ring->next_slot();
      std::size_t filled = 0;
      for (std::uint64_t left = 1 + random.below(kFrameBurst); left != 0 && published < packets.size(); --left) {
        const Arrived& arrived = packets[published++];
        const auto length = static_cast<std::uint32_t>(arrived.bytes.size());
        if (slots != nullptr) {
          std::memcpy(slots->staging(slot) + filled, arrived.bytes.data(), length);
          burst->append(nullptr, reinterpret_cast<std::uint8_t*>(slots->place(slot) + filled), length, arrived.preset);
          filled += slot_room(length);
          continue;
        }
        auto* const at = reinterpret_cast<std::uint8_t*>(memory.data()) +
                         (slot * kFrameBurst + burst->packet_count()) * kFrameStride;
        std::memcpy(at, arrived.bytes.data(), length);
        if (arrived.first == 0) {
          burst->append(nullptr, at, length, arrived.preset);
          continue;
        }
        Segment* const pieces = burst->append(nullptr, 2, arrived.preset);
        pieces[0].data = at;
        pieces[0].length = arrived.first;
        pieces[1].data = at + arrived.first;
        pieces[1].length = length - arrived.first;
      }
      const std::uint64_t word = handoff::pack_ring_word(ring->next_sequence(), burst->segment_count());
      if (slots != nullptr) {
        EXPECT_TRUE(slots->submit(slot, filled, word));
      }
      ring->publish();
      engine.on_published();
    }
    if (const handoff::Burst* const burst = ring->completed()) {
      EXPECT_EQ(burst->unworked(), 0U);
      EXPECT_EQ(burst->exceptions(), burst->packet_count() - burst->for_work());
      done += burst->packet_count();
      ring->release();
    }
  }
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
    const std::string text = "packets=" + std::to_string(1 + random.below(12)) +
                             ",seq=4:64,payload=12:" + std::to_string(1 + random.below(100)) +
                             ",stream=0:32,streams=" + std::to_string(1 + random.below(3)) +
                             ",window=" + std::to_string(1 + random.below(5)) +
                             ",jump=" + std::to_string(1 + random.below(6)) +
                             ",restart=" + std::to_string(2 + random.below(4));
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
