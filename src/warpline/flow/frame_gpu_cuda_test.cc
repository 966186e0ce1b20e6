// SPDX-License-Identifier: Apache-2.0
// A GPU's frames against the host's. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "warpline/flow/batch_testing.h"
#include "warpline/flow/frame_gpu.h"
#include "warpline/gpu/gpu_testing.cuh"

namespace warpline::flow {
namespace {

using gpu::testing::no_gpu;

std::uint32_t place_on_gpu(AssemblerView view, PacketBatch batch, WhenFull when_full, std::uint32_t* decided) {
  gpu::testing::launch(frame_batch_kernel(), 1, kFrameThreads, view, batch, when_full, decided);
  return *decided;
}

void expect_as_host(const MemorySource& source, std::uint64_t seeds) {
  const std::shared_ptr<std::byte> word = gpu::testing::pinned(sizeof(std::uint32_t));
  auto* const decided = reinterpret_cast<std::uint32_t*>(word.get());
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    expect_same(
        seed,
        [&](const AssemblerView& view, const PacketBatch& batch, WhenFull when_full) {
          return place_on_gpu(view, batch, when_full, decided);
        },
        source);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(FrameGpu, FramesInItsMemoryAreAsTheHostsAre) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  expect_as_host(gpu::testing::managed, 300);
}

TEST(FrameGpu, FramesInHostMemoryAreAsTheHostsAre) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  expect_as_host(gpu::testing::pinned, 50);
}

}  // namespace
}  // namespace warpline::flow
