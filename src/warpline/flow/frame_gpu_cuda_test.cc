// SPDX-License-Identifier: Apache-2.0
// A GPU's frames against the host's. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include <cuda_runtime_api.h>

#include "warpline/flow/batch_testing.h"
#include "warpline/flow/frame_gpu.h"

namespace warpline::flow {
namespace {

/// Memory that host and GPU read and write in turns.
std::shared_ptr<std::byte> managed_memory(std::size_t size) {
  void* memory = nullptr;
  EXPECT_EQ(cudaMallocManaged(&memory, size), cudaSuccess);
  EXPECT_EQ(cudaMemset(memory, 0, size), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return {static_cast<std::byte*>(memory), [](std::byte* data) { cudaFree(data); }};
}

/// Memory of the host that the GPU reaches over the bus.
std::shared_ptr<std::byte> pinned_memory(std::size_t size) {
  void* memory = nullptr;
  EXPECT_EQ(cudaHostAlloc(&memory, size, cudaHostAllocDefault), cudaSuccess);
  std::memset(memory, 0, size);
  return {static_cast<std::byte*>(memory), [](std::byte* data) { cudaFreeHost(data); }};
}

bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

std::uint32_t place_on_gpu(AssemblerView view, PacketBatch batch, WhenFull when_full, std::uint32_t* decided) {
  void* arguments[] = {&view, &batch, &when_full, &decided};
  EXPECT_EQ(cudaLaunchKernel(frame_batch_kernel(), dim3(1), dim3(kFrameThreads), arguments, 0, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return *decided;
}

void expect_as_host(const MemorySource& source, std::uint64_t seeds) {
  const std::shared_ptr<std::byte> word = pinned_memory(sizeof(std::uint32_t));
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
  if (!has_gpu()) GTEST_SKIP() << "no GPU";
  expect_as_host(managed_memory, 300);
}

TEST(FrameGpu, FramesInHostMemoryAreAsTheHostsAre) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU";
  expect_as_host(pinned_memory, 50);
}

}  // namespace
}  // namespace warpline::flow
