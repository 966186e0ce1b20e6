// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/memory/mirrored_rings.h"

namespace warpline::gpu {

Result<MirroredRings> MirroredRings::create(int, std::uint32_t, std::size_t) {
  return built_without_cuda("rings in GPU memory");
}
// Not trivial, as with CUDA.
MirroredRings::Mapping::~Mapping() {}  // NOLINT(modernize-use-equals-default)

}  // namespace warpline::gpu
