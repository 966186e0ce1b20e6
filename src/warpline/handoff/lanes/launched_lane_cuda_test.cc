// SPDX-License-Identifier: Apache-2.0
// Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/gpu/memory/host_registration.h"
#include "warpline/handoff/lanes/copy_lane_testing.h"
#include "warpline/handoff/lanes/launched_lane.h"

namespace warpline::handoff {
namespace {

using namespace testing;

class LaunchedLaneTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gpu::list_gpus()) GTEST_SKIP() << "no GPU";
    auto made = make_launched_lane(0);
    ASSERT_TRUE(made.ok()) << made.error().message();
    lane_ = *std::move(made);
  }

  std::unique_ptr<LaunchedLane> lane_;
};

/// Submits what expect_copies() does as pieces.
struct Copies {
  static constexpr std::uint16_t kMostCopies = PieceLane::kMostPieces;
  PieceLane& lane;

  [[nodiscard]] bool submit(const TestCopy* copies, std::uint32_t count) {
    std::vector<Piece> pieces;
    for (std::uint32_t i = 0; i < count; ++i) pieces.push_back({copies[i].to, copies[i].from, copies[i].length});
    return lane.submit(pieces);
  }
  [[nodiscard]] std::uint64_t landed() { return lane.landed(); }
  [[nodiscard]] std::optional<Error> failure() const { return lane.failure(); }
};

TEST_F(LaunchedLaneTest, CopiesEveryLengthAndAlignmentAndNothingBeside) {
  Pages from(kCopies * kCopyRoom);
  Pages to(kCopies * kCopyRoom);
  const auto from_open = gpu::HostRegistration::create(std::as_writable_bytes(std::span(from)));
  const auto to_open = gpu::HostRegistration::create(std::as_writable_bytes(std::span(to)));
  ASSERT_TRUE(from_open.ok() && to_open.ok());
  Copies copies{*lane_};
  expect_copies(copies, from, to);
}

TEST_F(LaunchedLaneTest, GoesThroughGpuMemoryAndBack) {
  Pages host(1 << 20);
  const auto open = gpu::HostRegistration::create(std::as_writable_bytes(std::span(host)));
  const auto device = gpu::DeviceBuffer::create(Bytes{host.size()});
  ASSERT_TRUE(open.ok() && device.ok());
  const auto copy = [&](void* to, const void* from) {
    const Piece piece{to, from, host.size()};
    const std::uint64_t before = lane_->landed();
    ASSERT_TRUE(lane_->submit({&piece, 1}));
    while (lane_->landed() == before) ASSERT_FALSE(lane_->failure());
  };
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
  const Pages expected = host;
  copy(device->data(), host.data());
  std::ranges::fill(host, std::uint8_t{0});
  copy(host.data(), device->data());
  EXPECT_TRUE(host == expected);
}

/// The GPU goes idle: whoever waits for all that it does is not kept.
TEST_F(LaunchedLaneTest, LeavesNothingRunning) {
  Pages bytes(8192);
  const auto open = gpu::HostRegistration::create(std::as_writable_bytes(std::span(bytes)));
  ASSERT_TRUE(open.ok());
  const Piece piece{bytes.data(), bytes.data() + 4096, 100};
  ASSERT_TRUE(lane_->submit({&piece, 1}));
  while (lane_->landed() == 0) ASSERT_FALSE(lane_->failure());
  // cudaMemcpy by the default stream waits for streams that do not say otherwise, and returns.
  const auto device = gpu::DeviceBuffer::create(Bytes{4096});
  ASSERT_TRUE(device.ok());
  EXPECT_TRUE(gpu::copy_and_wait(device->data(), bytes.data(), 4096));
}

TEST_F(LaunchedLaneTest, ACopyWaitsForWhatItsStreamWaitsFor) {
  Pages bytes(8192);
  const auto open = gpu::HostRegistration::create(std::as_writable_bytes(std::span(bytes)));
  ASSERT_TRUE(open.ok());
  auto* const gate = reinterpret_cast<std::uint64_t*>(bytes.data() + 4096);
  ASSERT_TRUE(gpu::CudaStream::queue_wait(lane_->stream(), gate, 1));
  bytes[0] = 7;
  const Piece piece{bytes.data() + 1, bytes.data(), 1};
  ASSERT_TRUE(lane_->submit({&piece, 1}));
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(lane_->landed(), 0U);
  bytes[0] = 8;  // what is filled before the stream goes on is what arrives
  std::atomic_ref(*gate).store(1, std::memory_order_release);
  while (lane_->landed() == 0) ASSERT_FALSE(lane_->failure());
  EXPECT_EQ(bytes[1], 8);
}

TEST_F(LaunchedLaneTest, RefusesMoreThanItHasRoomForUntilSomeHaveLanded) {
  Pages bytes(8192);
  const auto open = gpu::HostRegistration::create(std::as_writable_bytes(std::span(bytes)));
  ASSERT_TRUE(open.ok());
  auto* const gate = reinterpret_cast<std::uint64_t*>(bytes.data() + 4096);
  ASSERT_TRUE(gpu::CudaStream::queue_wait(lane_->stream(), gate, 1));
  const Piece piece{bytes.data() + 1, bytes.data(), 1};
  std::uint64_t submitted = 0;
  while (lane_->submit({&piece, 1})) ++submitted;
  EXPECT_GT(submitted, 1000U);
  std::atomic_ref(*gate).store(1, std::memory_order_release);
  while (lane_->landed() != submitted) ASSERT_FALSE(lane_->failure());
  EXPECT_TRUE(lane_->submit({&piece, 1}));
}

}  // namespace
}  // namespace warpline::handoff
