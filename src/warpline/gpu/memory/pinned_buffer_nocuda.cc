// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/memory/pinned_buffer.h"

namespace warpline::gpu {

Result<PinnedBuffer> PinnedBuffer::create(Bytes size) {
  return built_without_cuda(fmt::format("pinned memory of {} bytes", size.value));
}
void PinnedBuffer::Free::operator()(std::byte*) const {}

}  // namespace warpline::gpu
