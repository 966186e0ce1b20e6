// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/memory/copy_batch.h"

namespace warpline::gpu {

Result<void> copy_now(void*, const void*, std::size_t bytes) {
  return built_without_cuda(fmt::format("a copy of {} bytes", bytes));
}
Result<void> CopyBatch::submit(const CudaStream&) {
  return built_without_cuda(fmt::format("a batch of {} copies", bytes_.size()));
}

}  // namespace warpline::gpu
