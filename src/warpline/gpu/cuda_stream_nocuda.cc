// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/cuda_stream.h"

namespace warpline::gpu {

Result<CudaStream> CudaStream::create() { return built_without_cuda("a CUDA stream"); }
CudaStream::State CudaStream::query() const { return State::failed; }
Result<void> CudaStream::wait() const { return built_without_cuda("work on the GPU"); }
std::optional<Error> CudaStream::failure() const { return built_without_cuda("work on the GPU"); }
Result<void> CudaStream::copy(void*, const void*, std::size_t) const { return built_without_cuda("work on the GPU"); }
void CudaStream::Destroy::operator()(CUstream_st*) const {}

}  // namespace warpline::gpu
