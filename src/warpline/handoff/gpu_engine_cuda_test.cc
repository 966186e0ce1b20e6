// SPDX-License-Identifier: Apache-2.0
// The GPU's engines against the streams of engine_test.cc. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/host_registration.h"
#include "warpline/handoff/engine_testing.h"
#include "warpline/handoff/gpu_engine.h"
#include "warpline/handoff/gpu_engine_testing.h"
#include "warpline/handoff/lanes/copy_lane.h"
#include "warpline/handoff/lanes/copy_lane_testing.h"
#include "warpline/handoff/lanes/hash_pieces.h"

namespace warpline::handoff {
namespace {

using namespace testing;

static_assert(Engine<GpuEngine<Touch>>);

std::string name_of(const ::testing::TestParamInfo<EngineKind>& kind) { return std::string(name(kind.param)); }

class GpuEngineTest : public ::testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override {
    if (!gpu::list_gpus()) GTEST_SKIP() << "no GPU";
    ASSERT_TRUE(gpu::use_gpu(0).ok());
  }
  static GpuEngineSetup setup(std::uint16_t burst = 64, std::uint32_t ctas = 5) {
    return {.kind = GetParam(), .ctas = ctas, .burst = burst, .attendant = {std::nullopt, true}};
  }
  /// Opens the packets to the GPU for as long as the result lives.
  static gpu::HostRegistration open(PacketStream& stream) {
    Result<gpu::HostRegistration> registration =
        gpu::HostRegistration::create(std::as_writable_bytes(std::span(stream.packets)));
    EXPECT_TRUE(registration.ok());
    return *std::move(registration);
  }
  static void expect_through(const std::vector<std::uint16_t>& bursts, std::uint32_t slots, std::uint16_t most,
                             std::uint64_t first = 1) {
    PacketStream stream = make_stream(bursts, slots);
    const gpu::HostRegistration registration = open(stream);
    const auto ring = make_ring(slots, most, first);
    GpuEngine engine(*ring, Touch{}, setup(most));
    expect_all_through(*ring, engine, stream);
    EXPECT_FALSE(engine.failure());
  }
};

TEST_P(GpuEngineTest, EveryPacketOnceInOrderWithItsVerdict) {
  std::vector<std::uint16_t> bursts;
  for (std::uint16_t i = 0; i < 3000; ++i) bursts.push_back(static_cast<std::uint16_t>(1 + i * 7 % 64));
  for (const std::uint32_t slots : {1U, 2U, 16U}) expect_through(bursts, slots, 64);
}

TEST_P(GpuEngineTest, BurstsLargerThanAnyBlockOfThreads) { expect_through({2048, 1, 4096, 33, 1025}, 4, 4096); }

TEST_P(GpuEngineTest, SmallRingsThatWrapThousandsOfTimes) {
  expect_through(std::vector<std::uint16_t>(20'000, 2), 2, 2);
}

/// A slot's next burst may be another kernel's, which begins as soon as the one before is done.
TEST_P(GpuEngineTest, CountsWhatEachBurstOfASlotBrought) {
  for (const std::uint32_t slots : {1U, 2U, 4U}) {
    PacketStream stream = make_stream(std::vector<std::uint16_t>(3000, 256), 0);
    const gpu::HostRegistration registration = open(stream);
    const auto ring = make_ring(slots, 256);
    GpuEngine engine(*ring, CountOften{}, setup(256));
    ASSERT_TRUE(engine.start().ok());
    std::thread producer([&] { produce(*ring, engine, stream); });
    static_cast<void>(consume(*ring, stream.bursts.size()));
    producer.join();
    EXPECT_EQ(engine.stop(Nanos{0}).bursts, 0U);
    const auto worked = static_cast<std::uint64_t>(std::ranges::count_if(
        stream.packets, [](const Packet& packet) { return packet.preset() == Verdict::forward; }));
    CountOften sum;
    engine.for_each_worker_state([&sum](const CountOften& state) {
      for (std::size_t i = 0; i < std::size(sum.frames); ++i) sum.frames[i] += state.frames[i];
    });
    for (const std::uint64_t frames : sum.frames) EXPECT_EQ(frames, worked);
  }
}

TEST_P(GpuEngineTest, SequencesWrap) {
  expect_through(std::vector<std::uint16_t>(100, 3), 4, 3, kRingSequenceMask - 30);
}

TEST_P(GpuEngineTest, StopDrainsWhatWasPublished) {
  PacketStream stream = make_stream(std::vector<std::uint16_t>(16, 8), 1);
  const gpu::HostRegistration registration = open(stream);
  const auto ring = make_ring(16, 8);
  GpuEngine engine(*ring, Touch{}, setup(8));
  ASSERT_TRUE(engine.start().ok());
  produce(*ring, engine, stream);
  EXPECT_EQ(engine.stop(Nanos{10'000'000'000}).bursts, 0U);
  EXPECT_EQ(consume(*ring, 16).size(), stream.packets.size());
}

/// As ten pipelines do with packets in GPU memory: twenty persistent kernels that copy run beside the engines, on every
/// multiprocessor. Set up one after the other, the graphs of the later ones waited for the kernels of the earlier ones
/// for ever, and CTAs of one warp for a multiprocessor without any.
TEST_P(GpuEngineTest, SeveralRingsShareAGpuWithKernelsThatCopy) {
  constexpr std::size_t kRings = 10;
  std::vector<std::unique_ptr<CopyLane<GpuEngine<CopyPieces>>>> copies;
  for (std::size_t i = 0; i < 2 * kRings; ++i) {
    auto lane = CopyLane<GpuEngine<CopyPieces>>::create([](BurstRing& ring) {
      return std::make_unique<GpuEngine<CopyPieces>>(
          ring, CopyPieces{},
          GpuEngineSetup{.ctas = 8, .burst = kCopyThreads, .threads = kCopyThreads, .attendant = {std::nullopt, true}});
    });
    ASSERT_TRUE(lane.ok()) << lane.error().message();
    copies.push_back(*std::move(lane));
  }
  std::vector<PacketStream> streams;
  std::vector<gpu::HostRegistration> registrations;
  std::vector<std::unique_ptr<BurstRing>> rings;
  std::vector<std::unique_ptr<GpuEngine<Touch>>> engines;
  for (std::size_t i = 0; i < kRings; ++i) {
    streams.push_back(make_stream(std::vector<std::uint16_t>(2000, static_cast<std::uint16_t>(8 + i)), i));
  }
  for (std::size_t i = 0; i < kRings; ++i) {
    registrations.push_back(open(streams[i]));
    rings.push_back(make_ring(8, 16));
    engines.push_back(std::make_unique<GpuEngine<Touch>>(*rings[i], Touch{}, setup(16)));
  }
  for (const auto& engine : engines) {
    const Result<void> prepared = engine->prepare();
    ASSERT_TRUE(prepared.ok()) << prepared.error().message();
  }
  for (const auto& lane : copies) ASSERT_TRUE(lane->start().ok());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kRings; ++i) {
    ASSERT_TRUE(engines[i]->start().ok());
    threads.emplace_back([&, i] { produce(*rings[i], *engines[i], streams[i]); });
    threads.emplace_back(
        [&, i] { EXPECT_EQ(consume(*rings[i], streams[i].bursts.size()).size(), streams[i].packets.size()); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& engine : engines) EXPECT_EQ(engine->stop(Nanos{1'000'000'000}).bursts, 0U);
  for (const auto& lane : copies) lane->stop();
}

TEST_P(GpuEngineTest, StopsAnIdleEngineAndOneThatNeverStarted) {
  const auto ring = make_ring(4, 8);
  GpuEngine engine(*ring, Touch{}, setup(8));
  EXPECT_EQ(engine.stop(Nanos{0}).bursts, 0U);
  ASSERT_TRUE(engine.start().ok());
  EXPECT_EQ(engine.stop(Nanos{1'000'000'000}).bursts, 0U);
  EXPECT_FALSE(engine.failure());
}

TEST_P(GpuEngineTest, OneFrameOfAMillionThatIsSkippedIsSeen) {
  std::vector<std::uint8_t, PageAllocator<std::uint8_t>> packets(kMillion);
  const Result<gpu::HostRegistration> registration =
      gpu::HostRegistration::create(std::as_writable_bytes(std::span(packets)));
  ASSERT_TRUE(registration.ok());
  expect_skip_is_seen(
      packets, [](BurstRing& ring, SkipOne work) { return std::make_unique<GpuEngine<SkipOne>>(ring, work, setup()); });
}

INSTANTIATE_TEST_SUITE_P(Kinds, GpuEngineTest,
                         ::testing::Values(EngineKind::launch, EngineKind::graph, EngineKind::persistent), name_of);

TEST(GpuCopyLane, CopiesBetweenHostAndDevice) {
  if (!gpu::list_gpus()) GTEST_SKIP() << "no GPU";
  Pages from(kCopies * kCopyRoom);
  Pages to(kCopies * kCopyRoom);
  const Result<gpu::HostRegistration> source = gpu::HostRegistration::create(std::as_writable_bytes(std::span(from)));
  const Result<gpu::HostRegistration> target = gpu::HostRegistration::create(std::as_writable_bytes(std::span(to)));
  ASSERT_TRUE(source.ok() && target.ok());
  using Lane = CopyLane<GpuEngine<CopyPieces>>;
  const auto lane = Lane::create([](BurstRing& ring) {
    return std::make_unique<GpuEngine<CopyPieces>>(
        ring, CopyPieces{}, GpuEngineSetup{.ctas = 4, .burst = 256, .attendant = {std::nullopt, true}});
  });
  ASSERT_TRUE(lane.ok());
  ASSERT_TRUE((*lane)->start().ok());
  expect_copies(**lane, from, to);
}

TEST(GpuCopyLane, SharesAMultiprocessorWithAnother) {
  if (!gpu::list_gpus()) GTEST_SKIP() << "no GPU";
  const gpu::KernelLaunch kernel(DeviceWork<CopyPieces>::persistent_kernel(), 1, kCopyThreads);
  const Result<std::uint32_t> ctas = kernel.ctas_per_multiprocessor();
  ASSERT_TRUE(ctas.ok());
  EXPECT_GE(*ctas, 2U);
}

/// More kernels than a GPU has place for are refused before one of them starts, and those that were granted a place
/// work.
TEST(GpuCopyLane, IsRefusedWhereItMightFindNoPlace) {
  if (!gpu::list_gpus()) GTEST_SKIP() << "no GPU";
  using Lane = CopyLane<GpuEngine<CopyPieces>>;
  std::vector<std::unique_ptr<Lane>> lanes;
  for (;;) {
    auto lane = Lane::create([](BurstRing& ring) {
      return std::make_unique<GpuEngine<CopyPieces>>(
          ring, CopyPieces{},
          GpuEngineSetup{
              .ctas = 16, .burst = kCopyThreads, .threads = kCopyThreads, .attendant = {std::nullopt, true}});
    });
    if (!lane) {
      EXPECT_NE(lane.error().message().find("may not all find a place"), std::string::npos) << lane.error().message();
      break;
    }
    lanes.push_back(*std::move(lane));
    ASSERT_LT(lanes.size(), 200U);
  }
  for (const auto& lane : lanes) {
    const Result<void> started = lane->start();
    ASSERT_TRUE(started.ok()) << started.error().message();
  }
  for (const auto& lane : lanes) {
    EXPECT_FALSE(lane->failure());
    lane->stop();
  }
}

TEST(GpuHashLane, HashesAsTheCpuDoes) {
  if (!gpu::list_gpus()) GTEST_SKIP() << "no GPU";
  constexpr std::uint32_t kBlocks = 200;
  Pages bytes(kBlocks * kHashBlock + kHashBlock);
  Pages hashes(kBlocks * sizeof(std::uint64_t));
  Random random(3);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
  const Result<gpu::HostRegistration> source = gpu::HostRegistration::create(std::as_writable_bytes(std::span(bytes)));
  const Result<gpu::HostRegistration> target = gpu::HostRegistration::create(std::as_writable_bytes(std::span(hashes)));
  ASSERT_TRUE(source.ok() && target.ok());
  const auto lane = CopyLane<GpuEngine<HashPieces>>::create([](BurstRing& ring) {
    return std::make_unique<GpuEngine<HashPieces>>(
        ring, HashPieces{}, GpuEngineSetup{.ctas = 4, .burst = 256, .attendant = {std::nullopt, true}});
  });
  ASSERT_TRUE(lane.ok()) << lane.error().message();
  std::vector<TestCopy> blocks;
  for (std::uint32_t i = 0; i < kBlocks; ++i) {
    const std::size_t length = i % 3 == 0 ? kHashBlock : 1 + random.below(kHashBlock);
    blocks.push_back({&hashes[i * sizeof(std::uint64_t)], &bytes[i * kHashBlock + random.below(64)], length});
  }
  ASSERT_TRUE((*lane)->submit(blocks.data(), kBlocks)) << "what is submitted before the start waits";
  ASSERT_TRUE((*lane)->start().ok());
  while ((*lane)->landed() != 1) {
    ASSERT_FALSE((*lane)->failure()) << (*lane)->failure()->message();
    std::this_thread::yield();
  }
  for (const TestCopy& block : blocks) {
    std::uint64_t hash = 0;
    std::memcpy(&hash, block.to, sizeof(hash));
    EXPECT_EQ(hash, block_hash(static_cast<const std::uint8_t*>(block.from), static_cast<std::uint32_t>(block.length)));
  }
}

/// A GPU that has failed stays so for the whole process, so each of these runs in one of its own.
class GpuEngineDeathTest : public GpuEngineTest {
 protected:
  static GpuEngineSetup breakable() {
    GpuEngineSetup engine = setup(8, 2);
    engine.watchdog = Nanos{200'000'000};
    engine.failover = true;
    return engine;
  }

  static void start_or_exit(GpuEngine<BreakGpu>& engine) {
    if (const Result<void> started = engine.start(); !started) {
      std::fprintf(stderr, "%s\n", started.error().message().c_str());
      std::_Exit(1);
    }
  }

  /// Ends the process with 0 if the host takes over when the first burst breaks the GPU, and every packet comes back,
  /// those that the GPU had with `lost`.
  static void survive(Break how, Verdict lost) {
    constexpr std::size_t kBursts = 64;
    PacketStream stream = make_stream(std::vector<std::uint16_t>(kBursts, 8), 1);
    const gpu::HostRegistration registration = open(stream);
    const auto ring = make_ring(4, 8);
    GpuEngine engine(*ring, BreakGpu{how}, breakable());
    start_or_exit(engine);
    std::thread producer([&] { produce(*ring, engine, stream); });
    const std::vector<Received> received = consume(*ring, kBursts);
    producer.join();
    std::size_t stopped = 0;
    std::size_t worked = 0;
    for (const Received& packet : received) {
      stopped += packet.verdict == lost;
      worked += packet.verdict == Verdict::forward;
    }
    const bool left = engine.stop(Nanos{1'000'000'000}).bursts != 0;
    const bool all = received.size() == stream.packets.size();
    if (engine.failure()) std::fprintf(stderr, "%s\n", engine.failure()->message().c_str());
    std::fprintf(stderr, "%zu of %zu back, %zu stopped, %zu worked on\n", received.size(), stream.packets.size(),
                 stopped, worked);
    std::_Exit(all && !left && engine.failure() && stopped > 0 && worked > 0 ? 0 : 1);
  }
};

TEST_P(GpuEngineDeathTest, TheHostWorksOnAfterAFault) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(survive(Break::fault, Verdict::engine_stopped), ::testing::ExitedWithCode(0), "illegal memory access");
}

TEST_P(GpuEngineDeathTest, TheHostWorksOnWhenAKernelHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(survive(Break::hang, Verdict::engine_hung), ::testing::ExitedWithCode(0), "a kernel hangs");
}

INSTANTIATE_TEST_SUITE_P(Kinds, GpuEngineDeathTest,
                         ::testing::Values(EngineKind::launch, EngineKind::graph, EngineKind::persistent), name_of);

}  // namespace
}  // namespace warpline::handoff
