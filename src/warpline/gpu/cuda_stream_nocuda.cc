// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/cuda_stream.h"

namespace warpline::gpu {

Result<CudaStream> CudaStream::create() { return built_without_cuda("a CUDA stream"); }
CudaStream::State CudaStream::query() const { return State::failed; }
Result<void> CudaStream::wait(Nanos /*timeout*/) const { return built_without_cuda("work on the GPU"); }
std::optional<Error> CudaStream::failure() const { return built_without_cuda("work on the GPU"); }
Result<void> CudaStream::copy(void*, const void*, std::size_t) const { return built_without_cuda("work on the GPU"); }
bool CudaStream::queue_copy(void*, const void*, std::size_t) const { return false; }
bool CudaStream::queue_word(CUstream_st*, std::uint64_t*, std::uint64_t) { return false; }
bool CudaStream::queue_wait(CUstream_st*, const std::uint64_t*, std::uint64_t) { return false; }
Result<void> CudaStream::check_words() { return built_without_cuda("words in the order of a CUDA stream"); }
Result<CudaEvent> CudaEvent::create() { return built_without_cuda("a CUDA event"); }
bool CudaEvent::record(CUstream_st*) const { return false; }
bool CudaEvent::hold_back(const CudaStream&) const { return false; }
CudaStream::State CudaEvent::query() const { return CudaStream::State::failed; }
void CudaEvent::Destroy::operator()(CUevent_st*) const {}
bool copy_and_wait(void*, const void*, std::size_t) { return false; }
Result<void> clear_and_wait(void*, std::size_t) { return built_without_cuda("zeros in GPU memory"); }
void CudaStream::Destroy::operator()(CUstream_st*) const {}

}  // namespace warpline::gpu
