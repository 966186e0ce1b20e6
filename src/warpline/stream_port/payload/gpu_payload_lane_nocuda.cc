// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/cuda_error.h"
#include "warpline/stream_port/payload/gpu_payload_lane.h"

namespace warpline::stream_port {

Result<std::unique_ptr<stream::PayloadLane>> make_gpu_payload_lane(const stream::PayloadShape&,
                                                                   const stream::SeededPayload&, int,
                                                                   memory::MemoryKind) {
  return gpu::built_without_cuda("payload in the memory of a GPU");
}

}  // namespace warpline::stream_port
