// SPDX-License-Identifier: Apache-2.0
// Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/service/streams/kept/stream_home.h"

namespace warpline::service {
namespace {

using stream::ConnectionState;

/// A home of one connection, whose ring nobody looks into, and a stream that reads until it is let go on.
class StreamHomeOnGpuTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRing = 64 << 10;

  void SetUp() override {
    if (!gpu::list_gpus()) GTEST_SKIP() << "no GPU";
    ASSERT_TRUE(gpu::use_gpu(0).ok());
    stream::ReceiverSettings settings;
    settings.connections = 1;
    settings.ring_bytes = kRing;
    home_ = std::make_unique<StreamHome>(nullptr, settings, 0, StreamHome::Gpu{0, *gpu::StreamTickets::create()});
    gate_.emplace(*gpu::PinnedBuffer::create(warpline::Bytes{sizeof(std::uint64_t)}));
    stream::StreamView view;
    view.bytes = std::span(ring_);
    home_->begin(0, view);
  }
  [[nodiscard]] std::uint64_t* gate() const { return reinterpret_cast<std::uint64_t*>(gate_->data()); }
  /// What the lcore was told: up to where the ring is free, if there is news.
  std::optional<std::uint64_t> free() {
    std::optional<std::uint64_t> released;
    (void)home_->take_changes([&](std::uint32_t place) { released = home_->said(place).released; });
    return released;
  }
  std::uint64_t await_free() {
    for (;;) {
      if (const auto released = free()) return *released;
    }
  }
  /// Takes what came, as an array that `stream` reads.
  std::uint64_t take_for(const gpu::CudaStream& stream) {
    const StreamHome::Piece piece = home_->take(0);
    EXPECT_TRUE(home_->wait_for(stream.get()));
    return piece.begin;
  }

  std::vector<std::uint8_t> ring_ = std::vector<std::uint8_t>(kRing);
  std::optional<gpu::PinnedBuffer> gate_;
  std::unique_ptr<StreamHome> home_;
};

TEST_F(StreamHomeOnGpuTest, FreesWhatNoStreamReadsAtOnce) {
  (void)home_->reach(0, 1000, ConnectionState::open);
  home_->give_back(0, home_->take(0).begin);
  EXPECT_EQ(free(), 1000U);
  EXPECT_FALSE(free());
}

TEST_F(StreamHomeOnGpuTest, FreesWhatAStreamReadsBehindThat) {
  const gpu::CudaStream stream = *gpu::CudaStream::create();
  (void)home_->reach(0, 1000, ConnectionState::open);
  ASSERT_TRUE(gpu::CudaStream::queue_wait(stream.get(), gate(), 1));
  home_->give_back(0, take_for(stream), StreamHome::Reader::known);
  EXPECT_EQ(free(), 0U);
  // What comes later does not wait for less, and says nothing of what was before.
  (void)home_->reach(0, 1500, ConnectionState::open);
  home_->give_back(0, home_->take(0).begin);
  EXPECT_EQ(free(), 0U);
  home_->let_go(0, false);
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_EQ(free().value_or(0), 0U);
  }
  EXPECT_FALSE(home_->said(0).rests);
  std::atomic_ref(*gate()).store(1, std::memory_order_release);
  while (await_free() != 1500) {
  }
  EXPECT_TRUE(home_->said(0).rests);
}

TEST_F(StreamHomeOnGpuTest, NeverFreesWhatNobodyKnowsTheReaderOf) {
  (void)home_->reach(0, 1000, ConnectionState::open);
  home_->give_back(0, home_->take(0).begin, StreamHome::Reader::unknown);
  EXPECT_EQ(free(), 0U);
  (void)home_->reach(0, 2000, ConnectionState::open);
  home_->give_back(0, home_->take(0).begin, StreamHome::Reader::known);
  EXPECT_EQ(free(), 0U);
}

}  // namespace
}  // namespace warpline::service
