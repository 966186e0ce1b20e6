// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/device_buffer.h"

namespace warpline::gpu {
namespace {

/// What cudaMalloc promises.
constexpr std::uint64_t kOwnAlignment = 256;

Error out_of_memory(std::string what, std::uint64_t wanted) {
  (void)cudaGetLastError();
  std::size_t free = 0;
  std::size_t total = 0;
  (void)cudaMemGetInfo(&free, &total);
  return environment_error(std::move(what),
                           fmt::format("it needs {} MiB of GPU memory, and of {} MiB {} are free",
                                       (wanted + kMebibyte - 1) / kMebibyte, total / kMebibyte, free / kMebibyte),
                           "free GPU memory (nvidia-smi shows who has it), or use fewer or smaller buffers: "
                           "--pool-size, --data-room");
}

}  // namespace

Result<DeviceBuffer> DeviceBuffer::create(Bytes size, Bytes alignment) {
  const std::string what = fmt::format("GPU memory of {} bytes", size.value);
  const std::uint64_t wanted = size.value + std::max(alignment.value, kOwnAlignment) - kOwnAlignment;
  void* allocation = nullptr;
  const cudaError_t code = cudaMalloc(&allocation, wanted);
  if (code == cudaErrorMemoryAllocation) return out_of_memory(what, wanted);
  if (code != cudaSuccess) return cuda_error(what, code);
  const auto start = reinterpret_cast<std::uintptr_t>(allocation);
  const std::uintptr_t skip = (alignment.value - start % alignment.value) % alignment.value;
  DeviceBuffer buffer(allocation, static_cast<std::byte*>(allocation) + skip, size.value);
  WARPLINE_CHECK(clear_and_wait(buffer.data(), size.value));
  return buffer;
}

void DeviceBuffer::Free::operator()(void* allocation) const {
  if (!gpus_abandoned()) (void)cudaFree(allocation);
}

}  // namespace warpline::gpu
