// SPDX-License-Identifier: Apache-2.0
// Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "warpline/gpu/device.h"
#include "warpline/gpu/stream_tickets.h"

namespace warpline::gpu {
namespace {

class StreamTicketsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!list_gpus()) GTEST_SKIP() << "no GPU";
    ASSERT_TRUE(use_gpu(0).ok());
    tickets_ = *StreamTickets::create();
    gate_.emplace(*PinnedBuffer::create(Bytes{sizeof(std::uint64_t)}));
  }
  [[nodiscard]] std::uint64_t* gate() const { return reinterpret_cast<std::uint64_t*>(gate_->data()); }
  void await(std::uint64_t ticket) const {
    while (!tickets_->is_done(ticket)) {
    }
  }

  std::unique_ptr<StreamTickets> tickets_;
  std::optional<PinnedBuffer> gate_;
};

TEST_F(StreamTicketsTest, WithoutStreamsAreDoneInTheirOrder) {
  EXPECT_TRUE(tickets_->is_done(0));
  const std::uint64_t first = tickets_->draw();
  const std::uint64_t second = tickets_->draw();
  EXPECT_LT(first, second);
  await(second);
  EXPECT_TRUE(tickets_->is_done(first));
  EXPECT_FALSE(tickets_->is_done(second + 1));
  EXPECT_FALSE(tickets_->is_done(StreamTickets::kNever));
}

TEST_F(StreamTicketsTest, WaitForWhatAStreamHadBeenGiven) {
  const CudaStream stream = *CudaStream::create();
  ASSERT_TRUE(CudaStream::queue_wait(stream.get(), gate(), 1));
  const std::uint64_t before = tickets_->draw();
  ASSERT_TRUE(tickets_->wait_for(stream.get()));
  const std::uint64_t behind = tickets_->draw();
  await(before);
  for (int i = 0; i < 10'000; ++i) ASSERT_FALSE(tickets_->is_done(behind));
  std::atomic_ref(*gate()).store(1, std::memory_order_release);
  await(behind);
}

/// What a stream of the program was given takes as long as it needs: nothing is given up for it.
TEST_F(StreamTicketsTest, WaitAtTheirEndForWhatStreamsWereGiven) {
  const CudaStream stream = *CudaStream::create();
  ASSERT_TRUE(CudaStream::queue_wait(stream.get(), gate(), 1));
  ASSERT_TRUE(tickets_->wait_for(stream.get()));
  std::atomic<bool> ended = false;
  std::thread end([&] {
    tickets_.reset();
    ended.store(true);
  });
  for (int i = 0; i < 10'000; ++i) EXPECT_EQ(stream.query(), CudaStream::State::busy);
  EXPECT_FALSE(ended.load());
  std::atomic_ref(*gate()).store(1, std::memory_order_release);
  end.join();
  EXPECT_FALSE(gpus_abandoned());
}

}  // namespace
}  // namespace warpline::gpu
