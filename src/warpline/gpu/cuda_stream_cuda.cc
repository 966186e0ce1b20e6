// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cuda_runtime_api.h>

#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"

namespace warpline::gpu {

Result<CudaStream> CudaStream::create() {
  cudaStream_t stream = nullptr;
  if (const cudaError_t code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); code != cudaSuccess) {
    return cuda_error("a CUDA stream", code);
  }
  return CudaStream(stream);
}

CudaStream::State CudaStream::query() const {
  const cudaError_t code = cudaStreamQuery(stream_.get());
  return code == cudaSuccess ? State::idle : code == cudaErrorNotReady ? State::busy : State::failed;
}

Result<void> CudaStream::wait() const {
  if (const cudaError_t code = cudaStreamSynchronize(stream_.get()); code != cudaSuccess) {
    return cuda_error("work on the GPU", code);
  }
  return {};
}

std::optional<Error> CudaStream::failure() const {
  const cudaError_t code = cudaStreamQuery(stream_.get());
  if (code == cudaSuccess || code == cudaErrorNotReady) return std::nullopt;
  return cuda_error("work on the GPU", code);
}

Result<void> CudaStream::copy(void* to, const void* from, std::size_t bytes) const {
  if (const cudaError_t code = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_.get());
      code != cudaSuccess) {
    return cuda_error(fmt::format("a copy of {} bytes", bytes), code);
  }
  return {};
}

void CudaStream::Destroy::operator()(CUstream_st* stream) const {
  if (!gpus_abandoned()) (void)cudaStreamDestroy(stream);
}

}  // namespace warpline::gpu
