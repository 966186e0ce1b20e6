// SPDX-License-Identifier: Apache-2.0
// The kernels that put packets into frames in GPU memory.
#include "warpline/ingest/frames/assemble_on_gpu.cuh"

WARPLINE_DEVICE_WORK(warpline::ingest::AssembleOnGpu);

namespace warpline::ingest {
namespace {

__global__ void end_frames(AssembleOnGpu work) {
  if (threadIdx.x == 0) {
    flow::FrameCore core(work.view);
    core.flush();
    core.publish();
  }
  __syncthreads();
  consume_handed(work.view, *work.words);
}

}  // namespace

const void* end_frames_kernel() { return reinterpret_cast<const void*>(&end_frames); }

}  // namespace warpline::ingest
