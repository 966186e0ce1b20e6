// SPDX-License-Identifier: Apache-2.0
// A kernel that consumes packet queues, against the streams of engine_test.cc. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/host_registration.h"
#include "warpline/handoff/gpu_engine_testing.h"
#include "warpline/handoff/queues/gpu_queue_engine.h"
#include "warpline/handoff/queues/queue_engine.h"
#include "warpline/handoff/queues/queue_engine_testing.h"

namespace warpline::handoff {
namespace {

using namespace testing;

static_assert(QueueEngine<GpuQueueEngine<Touch>>);

class GpuQueueEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gpu::list_gpus()) GTEST_SKIP() << "no GPU";
    ASSERT_TRUE(gpu::use_gpu(0).ok());
  }
  static GpuEngineSetup setup(std::uint16_t most) {
    return {.ctas = 1, .burst = most, .threads = kQueueThreads, .attendant = {std::nullopt, true}};
  }
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
    const auto queues = make_queues(slots, first);
    GpuQueueEngine engine(*queues, Touch{}, setup(most));
    expect_all_through(*queues, engine, stream);
  }
};

TEST_F(GpuQueueEngineTest, EveryPacketOnceInOrderWithItsVerdict) {
  std::vector<std::uint16_t> bursts;
  for (std::uint16_t i = 0; i < 3000; ++i) bursts.push_back(static_cast<std::uint16_t>(1 + i * 7 % 64));
  for (const std::uint16_t most : {1, 32, 64, 100, 512}) expect_through(bursts, 1024, most);
}

TEST_F(GpuQueueEngineTest, SmallQueuesThatWrapThousandsOfTimes) {
  expect_through(std::vector<std::uint16_t>(20'000, 5), 16, 64);
}

TEST_F(GpuQueueEngineTest, SequencesWrap) {
  expect_through(std::vector<std::uint16_t>(1000, 3), 16, 32, kRingSequenceMask - 30);
}

TEST_F(GpuQueueEngineTest, StopDrainsWhatWasPosted) {
  PacketStream stream = make_stream(std::vector<std::uint16_t>(64, 8), 1);
  const gpu::HostRegistration registration = open(stream);
  const auto queues = make_queues(2048);
  GpuQueueEngine engine(*queues, Touch{}, setup(64));
  ASSERT_TRUE(engine.start().ok());
  post_stream(*queues, stream);
  engine.stop(Nanos{10'000'000'000});
  EXPECT_FALSE(engine.failure());
  Left left;
  while (take(*queues, left, 64)) continue;
  EXPECT_EQ(left.released, stream.packets.size());
}

TEST_F(GpuQueueEngineTest, SeveralPairsShareAGpu) {
  constexpr std::size_t kPairs = 8;
  std::vector<PacketStream> streams;
  std::vector<gpu::HostRegistration> registrations;
  std::vector<std::unique_ptr<queues::PacketQueues>> pairs;
  std::vector<std::unique_ptr<GpuQueueEngine<Touch>>> engines;
  for (std::size_t i = 0; i < kPairs; ++i) {
    streams.push_back(make_stream(std::vector<std::uint16_t>(2000, static_cast<std::uint16_t>(8 + i)), i));
  }
  for (std::size_t i = 0; i < kPairs; ++i) {
    registrations.push_back(open(streams[i]));
    pairs.push_back(make_queues(256));
    engines.push_back(std::make_unique<GpuQueueEngine<Touch>>(*pairs[i], Touch{}, setup(64)));
  }
  for (const auto& engine : engines) {
    const Result<void> prepared = engine->prepare();
    ASSERT_TRUE(prepared.ok()) << prepared.error().message();
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kPairs; ++i) {
    threads.emplace_back([&, i] { expect_all_through(*pairs[i], *engines[i], streams[i]); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(GpuQueueEngineTest, StopsAnIdleOneAndOneThatNeverStarted) {
  const auto queues = make_queues(16);
  GpuQueueEngine engine(*queues, Touch{}, setup(16));
  engine.stop(Nanos{0});
  ASSERT_TRUE(engine.start().ok());
  engine.stop(Nanos{1'000'000'000});
  EXPECT_FALSE(engine.failure());
}

/// A GPU that has failed stays so for the whole process, so each of these runs in one of its own.
class GpuQueueEngineDeathTest : public GpuQueueEngineTest {
 protected:
  /// Ends the process with 0 if the failure is reported, and every packet comes back, none of them as worked on.
  static void report(Break how) {
    PacketStream stream = make_stream(std::vector<std::uint16_t>(16, 8), 0);
    const gpu::HostRegistration registration = open(stream);
    const auto queues = make_queues(1024);
    GpuEngineSetup breakable = setup(8);
    breakable.watchdog = Nanos{200'000'000};
    GpuQueueEngine engine(*queues, BreakGpu{how}, breakable);
    if (const Result<void> started = engine.start(); !started) {
      std::fprintf(stderr, "%s\n", started.error().message().c_str());
      std::_Exit(1);
    }
    post_stream(*queues, stream);
    while (!engine.failure()) std::this_thread::yield();
    engine.stop(Nanos{0});
    std::size_t stopped = 0;
    queues->reclaim([&](const queues::PacketQueues::Released& released) {
      stopped += released.packet != nullptr && released.verdict == Verdict::engine_stopped;
    });
    std::fprintf(stderr, "%s\n%zu stopped\n", engine.failure()->message().c_str(), stopped);
    std::_Exit(stopped == stream.packets.size() ? 0 : 1);
  }
};

TEST_F(GpuQueueEngineDeathTest, AFaultIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(report(Break::fault), ::testing::ExitedWithCode(0), "illegal memory access");
}

TEST_F(GpuQueueEngineDeathTest, AKernelThatHangsIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(report(Break::hang), ::testing::ExitedWithCode(0), "a kernel hangs");
}

}  // namespace
}  // namespace warpline::handoff
