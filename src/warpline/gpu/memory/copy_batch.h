// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/gpu/cuda_stream.h"

namespace warpline::gpu {

/// Copies between host and GPU memory, either way, by cudaMemcpy: has returned when the host's memory is free to be
/// used again, which for host memory that is not pinned, and for a copy to the host, is when the bytes have arrived.
[[nodiscard]] Result<void> copy_now(void* to, const void* from, std::size_t bytes);

/// CopyBatch is copies that are handed to CUDA in one call, cudaMemcpyBatchAsync (CUDA 12.8): in no order among
/// themselves. The memory is the caller's. One thread at a time.
class CopyBatch {
 public:
  /// Adds a copy between pinned and GPU memory.
  void add(void* to, const void* from, std::size_t bytes) {
    to_.push_back(to);
    from_.push_back(const_cast<void*>(from));
    bytes_.push_back(bytes);
  }
  /// Queues all of them on the stream, as often as it is called. The environment error of CUDA, or of a program or a
  /// driver that knows no such call.
  [[nodiscard]] Result<void> submit(const CudaStream& stream);

 private:
  std::vector<void*> to_;
  std::vector<void*> from_;
  std::vector<std::size_t> bytes_;
};

}  // namespace warpline::gpu
