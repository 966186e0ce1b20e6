// SPDX-License-Identifier: Apache-2.0
#pragma once

// For the tests of lanes on a GPU: zeroed memory, and a kernel that copies.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>

#include <cuda_runtime_api.h>

namespace warpline::stream::testing {

inline bool no_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) != cudaSuccess || count == 0;
}

/// Memory that host and GPU read and write in turns.
inline std::shared_ptr<std::byte> managed(std::size_t size) {
  void* memory = nullptr;
  EXPECT_EQ(cudaMallocManaged(&memory, size), cudaSuccess);
  EXPECT_EQ(cudaMemset(memory, 0, size), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return {static_cast<std::byte*>(memory), [](std::byte* data) { cudaFree(data); }};
}

/// Memory of the host that the GPU reaches over the bus.
inline std::shared_ptr<std::byte> pinned(std::size_t size) {
  void* memory = nullptr;
  EXPECT_EQ(cudaHostAlloc(&memory, size, cudaHostAllocDefault), cudaSuccess);
  std::memset(memory, 0, size);
  return {static_cast<std::byte*>(memory), [](std::byte* data) { cudaFreeHost(data); }};
}

/// Memory of the host alone.
inline std::shared_ptr<std::byte> zeroed(std::size_t size) {
  return {new std::byte[size](), [](const std::byte* data) { delete[] data; }};
}

/// Returns the address of the __global__ function (const CopyPiece*, std::uint32_t) that copies each piece by one warp.
const void* copy_pieces_kernel();

}  // namespace warpline::stream::testing
