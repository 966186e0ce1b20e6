// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cuda_runtime_api.h>

#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/memory/copy_batch.h"

namespace warpline::gpu {

Result<void> copy_now(void* to, const void* from, std::size_t bytes) {
  if (const cudaError_t code = cudaMemcpy(to, from, bytes, cudaMemcpyDefault); code != cudaSuccess) {
    return cuda_error(fmt::format("a copy of {} bytes", bytes), code);
  }
  return {};
}

Result<void> CopyBatch::submit(const CudaStream& stream) {
  const std::string what = fmt::format("a batch of {} copies", bytes_.size());
#if CUDART_VERSION >= 12080
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;
#if CUDART_VERSION >= 13000
  const cudaError_t code = cudaMemcpyBatchAsync(to_.data(), from_.data(), bytes_.data(), bytes_.size(), &attributes,
                                                &first, 1, stream.get());
#else
  std::size_t failed = 0;
  const cudaError_t code = cudaMemcpyBatchAsync(to_.data(), from_.data(), bytes_.data(), bytes_.size(), &attributes,
                                                &first, 1, &failed, stream.get());
#endif
  if (code != cudaSuccess) return cuda_error(what, code);
  return {};
#else
  (void)stream;
  return environment_error(what, "the program was built with a CUDA older than 12.8", "build it with a newer one");
#endif
}

}  // namespace warpline::gpu
