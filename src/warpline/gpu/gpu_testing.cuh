// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests of kernels (*_cuda_test.cc) in any module: zeroed memory that a GPU reaches, and launches. It uses the CUDA
// runtime alone, so that modules below and beside `gpu` may include it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

#include <cuda_runtime_api.h>

namespace warpline::gpu::testing {

inline bool no_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) != cudaSuccess || count == 0;
}

/// Returns memory that host and GPU read and write alternately.
inline std::shared_ptr<std::byte> managed(std::size_t size) {
  void* memory = nullptr;
  EXPECT_EQ(cudaMallocManaged(&memory, std::max<std::size_t>(size, 1)), cudaSuccess);
  EXPECT_EQ(cudaMemset(memory, 0, size), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return {static_cast<std::byte*>(memory), [](std::byte* data) { cudaFree(data); }};
}

/// Returns the same as an array of `count`. `T` needs no constructor: all of its bits are 0.
template <typename T>
std::shared_ptr<T[]> managed_array(std::size_t count) {
  const std::shared_ptr<std::byte> memory = managed(count * sizeof(T));
  return {memory, reinterpret_cast<T*>(memory.get())};
}

/// Returns memory of the host that the GPU reaches over the bus.
inline std::shared_ptr<std::byte> pinned(std::size_t size) {
  void* memory = nullptr;
  EXPECT_EQ(cudaHostAlloc(&memory, size, cudaHostAllocDefault), cudaSuccess);
  std::memset(memory, 0, size);
  return {static_cast<std::byte*>(memory), [](std::byte* data) { cudaFreeHost(data); }};
}

/// Launches a kernel and waits for it. The arguments are of its parameters' types; pointers may lack `const`.
template <typename... Arguments>
void launch(const void* kernel, unsigned ctas, unsigned threads, Arguments... arguments) {
  void* addresses[] = {&arguments...};
  ASSERT_EQ(cudaLaunchKernel(kernel, dim3(ctas), dim3(threads), addresses, 0, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

/// A kernel of one CTA that runs beside the host, on a stream of its own, with this memory of the host open to it.
class RunningKernel {
 public:
  template <typename... Arguments>
  RunningKernel(std::span<std::byte> opened, const void* kernel, unsigned threads, Arguments... arguments)
      : opened_(opened) {
    void* addresses[] = {&arguments...};
    EXPECT_EQ(cudaHostRegister(opened.data(), opened.size(), cudaHostRegisterDefault), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaLaunchKernel(kernel, dim3(1), dim3(threads), addresses, 0, stream_), cudaSuccess);
  }
  RunningKernel(const RunningKernel&) = delete;
  RunningKernel& operator=(const RunningKernel&) = delete;
  ~RunningKernel() {
    wait();
    cudaStreamDestroy(stream_);
    cudaHostUnregister(opened_.data());
  }

  [[nodiscard]] bool runs() const { return cudaStreamQuery(stream_) == cudaErrorNotReady; }
  /// Waits for its end, which the caller has asked it for.
  void wait() const { EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess); }

 private:
  std::span<std::byte> opened_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace warpline::gpu::testing
