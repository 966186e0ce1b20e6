// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/cuda_error.h"
#include "warpline/stream_port/seeded_comparer.h"

namespace warpline::stream_port {

Result<std::unique_ptr<SeededComparer>> make_gpu_comparer(int, const stream::SeededPayload&) {
  return gpu::built_without_cuda("a comparison of streams");
}

}  // namespace warpline::stream_port
