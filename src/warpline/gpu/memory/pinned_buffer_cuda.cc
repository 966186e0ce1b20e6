// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>

#include <cuda_runtime_api.h>

#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/pinned_buffer.h"

namespace warpline::gpu {

Result<PinnedBuffer> PinnedBuffer::create(Bytes size) {
  const std::string what = fmt::format("pinned memory of {} bytes", size.value);
  void* data = nullptr;
  if (const cudaError_t code = cudaHostAlloc(&data, size.value, cudaHostAllocMapped | cudaHostAllocPortable);
      code != cudaSuccess) {
    return pinning_error(what, code, size, lockable_memory());
  }
  std::memset(data, 0, size.value);
  return PinnedBuffer(static_cast<std::byte*>(data), size.value);
}

void PinnedBuffer::Free::operator()(std::byte* data) const {
  if (!gpus_abandoned()) (void)cudaFreeHost(data);
}

}  // namespace warpline::gpu
