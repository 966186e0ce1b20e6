// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/memory/mirrored_rings.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/gpu/memory/pinned_buffer.h"

namespace warpline::gpu {
namespace {

TEST(MirroredRings, SayWhereThereIsNoGpu) {
  if (list_gpus().ok()) GTEST_SKIP() << "there is a GPU";
  const auto rings = MirroredRings::create(0, 1, 2 << 20);
  ASSERT_FALSE(rings.ok());
  EXPECT_EQ(rings.error().kind, ErrorKind::environment);
}

TEST(MirroredRings, GoOnBehindTheirEnd) {
  if (!list_gpus().ok()) GTEST_SKIP() << "no GPU";
  constexpr std::size_t kRing = 2 << 20;
  const auto rings = MirroredRings::create(0, 3, kRing);
  ASSERT_TRUE(rings.ok()) << rings.error().message();
  std::vector<std::uint8_t> bytes(1000);
  for (std::uint32_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<std::uint8_t>(k * 7 + i + 1);
    ASSERT_TRUE(copy_and_wait(rings->ring(i) + kRing - 400, bytes.data(), bytes.size()));
  }
  for (std::uint32_t i = 0; i < 3; ++i) {
    std::vector<std::uint8_t> begin(700);
    ASSERT_TRUE(copy_and_wait(begin.data(), rings->ring(i), begin.size()));
    for (std::size_t k = 0; k < begin.size(); ++k) {
      ASSERT_EQ(begin[k], k < 600 ? static_cast<std::uint8_t>((k + 400) * 7 + i + 1) : 0) << k;
    }
  }
}

/// What a program has on its default stream may take longer than memory may take to be made.
TEST(MirroredRings, AreMadeWhileTheDefaultStreamIsBusy) {
  if (!list_gpus().ok()) GTEST_SKIP() << "no GPU";
  ASSERT_TRUE(use_gpu(0).ok());
  ASSERT_TRUE(CudaStream::check_words().ok());
  const PinnedBuffer gate = *PinnedBuffer::create(Bytes{sizeof(std::uint64_t)});
  auto* const word = reinterpret_cast<std::uint64_t*>(gate.data());
  ASSERT_TRUE(CudaStream::queue_wait(nullptr, word, 1));
  // Opens the gate, at the latest after some time, so that the test ends also where it fails.
  std::atomic<bool> made = false;
  std::thread guard([&] {
    const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!made.load() && std::chrono::steady_clock::now() < last) std::this_thread::yield();
    EXPECT_TRUE(made.load()) << "it waits for the default stream";
    std::atomic_ref(*word).store(1, std::memory_order_release);
  });
  const auto rings = MirroredRings::create(0, 1, 2 << 20);
  EXPECT_TRUE(rings.ok());
  const auto buffer = DeviceBuffer::create(Bytes{1 << 20});
  EXPECT_TRUE(buffer.ok());
  EXPECT_FALSE(gpus_abandoned());
  made.store(true);
  guard.join();
}

TEST(MirroredRings, AreOfWholePages) {
  if (!list_gpus().ok()) GTEST_SKIP() << "no GPU";
  const auto rings = MirroredRings::create(0, 1, 4096);
  ASSERT_FALSE(rings.ok());
  EXPECT_EQ(rings.error().kind, ErrorKind::usage);
}

}  // namespace
}  // namespace warpline::gpu
