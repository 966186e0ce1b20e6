// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda_error.h"
#include "gpu/stream.h"

namespace warpline {

Result<Stream> Stream::create() { return built_without_cuda("a CUDA stream"); }
Stream::State Stream::query() const { return State::failed; }
Result<void> Stream::wait() const { return built_without_cuda("work on the GPU"); }
std::optional<Error> Stream::failure() const { return built_without_cuda("work on the GPU"); }
Result<void> Stream::copy(void*, const void*, std::size_t) const { return built_without_cuda("work on the GPU"); }
void Stream::Destroy::operator()(CUstream_st*) const {}

}  // namespace warpline
