// SPDX-License-Identifier: Apache-2.0
// Lanes whose GPU faults, or whose kernel takes nothing: the receiver says so, and nobody waits for them. A GPU that
// has failed stays so for the whole process, so each of these runs in one of its own.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>

#include "gpu_lane_fixture.h"
#include "warpline/gpu/kernel_launch.h"
#include "warpline/stream/seeded_payload.h"
#include "warpline/stream_port/payload/gpu_payload_lane.h"
#include "warpline/stream_port/seeded_comparer.h"

namespace warpline::gpu_lane_test {
namespace {

/// Takes all places of a GPU, for good: whoever uses it is in a process of its own. Memory that the rest needs is made
/// before start(): beside a kernel that stays CUDA makes none.
class GpuHold {
 public:
  explicit GpuHold(const gpu::CudaStream& stream) : stream_(&stream) {
    const auto per_multiprocessor = gpu::KernelLaunch(hold_kernel(), 1, kThreads).ctas_per_multiprocessor();
    ctas_ = *per_multiprocessor * static_cast<unsigned>(gpu::find_gpu(0)->multiprocessors);
    places_ = new (memory_->data()) HeldPlaces;
  }
  /// Returns when no place is left; on a GPU that other processes use as well, that takes a while. false: it does not
  /// begin.
  [[nodiscard]] bool start() {
    gpu::KernelLaunch hold(hold_kernel(), ctas_, kThreads, places_);
    if (!hold(*stream_)) return false;
    while (load_acquire(&places_->held) != ctas_) {
    }
    return true;
  }

 private:
  static constexpr unsigned kThreads = 1024;

  std::optional<gpu::PinnedBuffer> memory_ = *gpu::PinnedBuffer::create(Bytes{sizeof(HeldPlaces)});
  HeldPlaces* places_ = nullptr;
  const gpu::CudaStream* stream_;
  unsigned ctas_ = 0;
};

class GpuLaneDeathTest : public GpuLanes {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    GpuLanes::SetUp();
  }
  void prepare() override { hold_.emplace(*stream_); }
  [[nodiscard]] stream::ReceiverSettings receiver_settings() const override {
    stream::ReceiverSettings settings = gpu_lane_settings();
    settings.lane_patience = Nanos{300'000'000};
    return settings;
  }

  /// Ends the process with 0 if the lane is found to have failed and is given up, without a wait for it.
  void give_up() {
    const auto begin = std::chrono::steady_clock::now();
    std::optional<Error> failure;
    while (!failure) {
      turn();
      now_ = Nanos{std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count() + 1'000'000'000};
      failure = receiver_->lane_failure(now_);
    }
    std::fprintf(stderr, "%s\n", failure->message().c_str());
    receiver_->stop_lane();
    const bool soon = std::chrono::steady_clock::now() - begin < std::chrono::seconds(20);
    const std::uint64_t ended = receiver_->counters().get(stream::Disposition::lane_ended);
    std::_Exit(soon && ended == 1 && gpu::gpus_abandoned() ? 0 : 1);
  }
  /// Gives a frame that lies where no GPU reaches.
  void fault() {
    Segment segment{reinterpret_cast<std::uint8_t*>(64), 60, 0, Verdict::forward};
    receiver_->give(frame_at(&segment), false, this);
    give_up();
  }
  /// Has another kernel keep all places, so that the lane's never begins.
  void hang() {
    if (!hold_->start()) std::_Exit(1);
    give(0, 0, packet::kTcpSyn);
    give_up();
  }

  std::optional<GpuHold> hold_;
};

TEST_P(GpuLaneDeathTest, AFaultIsTold) { EXPECT_EXIT(fault(), ::testing::ExitedWithCode(0), "illegal memory access"); }

TEST_P(GpuLaneDeathTest, AKernelThatTakesNothingIsGivenUp) {
  EXPECT_EXIT(hang(), ::testing::ExitedWithCode(0), "none was done for 300 ms");
}

/// Kernels of streams that never begin, since another kernel keeps all places: who stops them waits for their time
/// alone.
class GpuStreamKernelsDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!gpu::list_gpus().ok()) GTEST_SKIP() << "no GPU";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
  void prepare() {
    if (!gpu::use_gpu(0).ok()) std::_Exit(2);
    frame_.emplace(*gpu::PinnedBuffer::create(Bytes{2048}));
    stream_.emplace(*gpu::CudaStream::create());
    hold_.emplace(*stream_);
  }
  void stop_payload() {
    prepare();
    const stream::SeededPayload payload(1);
    auto lane = *stream_port::make_gpu_payload_lane({.connections = 1, .ring_bytes = kRing}, payload, 0,
                                                    memory::MemoryKind::device);
    if (!hold_->start()) std::_Exit(2);
    auto* const frame = reinterpret_cast<std::uint8_t*>(frame_->data());
    const stream::FillOrder fill{.to = frame + 64, .from = lane->ring(0), .checksum = frame, .length = 1000};
    if (!lane->submit({}, {&fill, 1})) std::_Exit(2);
    lane->stop();
    std::_Exit(lane->landed() == 0 && gpu::gpus_abandoned() ? 0 : 1);
  }
  void destroy_comparer() {
    prepare();
    const stream::SeededPayload payload(1);
    auto comparer = *stream_port::make_gpu_comparer(0, payload);
    if (!hold_->start()) std::_Exit(2);
    comparer->submit({});
    if (comparer->idle()) std::_Exit(1);
    comparer.reset();
    std::_Exit(gpu::gpus_abandoned() ? 0 : 1);
  }

  std::optional<gpu::PinnedBuffer> frame_;
  std::optional<gpu::CudaStream> stream_;
  std::optional<GpuHold> hold_;
};

TEST_F(GpuStreamKernelsDeathTest, PayloadThatIsPutNowhereIsGivenUp) {
  EXPECT_EXIT(stop_payload(), ::testing::ExitedWithCode(0), "");
}

TEST_F(GpuStreamKernelsDeathTest, AComparisonThatNeverEndsIsGivenUp) {
  EXPECT_EXIT(destroy_comparer(), ::testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Kinds, GpuLaneDeathTest,
                         testing::Values(GpuLaneKind{EngineKind::persistent, MemoryKind::device},
                                         GpuLaneKind{EngineKind::launch, MemoryKind::device},
                                         GpuLaneKind{EngineKind::persistent, MemoryKind::device, 64}));

}  // namespace
}  // namespace warpline::gpu_lane_test
