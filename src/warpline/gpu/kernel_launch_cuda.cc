// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/kernel_launch.h"

namespace warpline::gpu {

bool KernelLaunch::on(CUstream_st* stream) {
  return cudaLaunchKernel(kernel_, dim3(ctas_), dim3(threads_), addresses_.data(), 0, stream) == cudaSuccess;
}

Result<std::uint32_t> KernelLaunch::ctas_per_multiprocessor() const {
  int most = 0;
  if (const cudaError_t code =
          cudaOccupancyMaxActiveBlocksPerMultiprocessor(&most, kernel_, static_cast<int>(threads_), 0);
      code != cudaSuccess) {
    return cuda_error("what a kernel occupies", code);
  }
  return static_cast<std::uint32_t>(most);
}

Result<LaunchGraph> LaunchGraph::create(KernelLaunch launch) {
  constexpr const char* kWhat = "a CUDA graph";
  WARPLINE_TRY(const CudaStream stream, CudaStream::create());
  if (const cudaError_t code = cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal);
      code != cudaSuccess) {
    return cuda_error(kWhat, code);
  }
  const bool launched = launch(stream);
  const cudaError_t refused = cudaGetLastError();
  cudaGraph_t graph = nullptr;
  const cudaError_t captured = cudaStreamEndCapture(stream.get(), &graph);
  if (!launched) return cuda_error(kWhat, refused);
  if (captured != cudaSuccess) return cuda_error(kWhat, captured);
  cudaGraphExec_t executable = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&executable, graph, 0);
  (void)cudaGraphDestroy(graph);
  if (made != cudaSuccess) return cuda_error(kWhat, made);
  LaunchGraph ready(executable);
  if (const cudaError_t uploaded = cudaGraphUpload(executable, stream.get()); uploaded != cudaSuccess) {
    return cuda_error(kWhat, uploaded);
  }
  WARPLINE_CHECK(stream.wait());
  return ready;
}

bool LaunchGraph::operator()(const CudaStream& stream) {
  return cudaGraphLaunch(graph_.get(), stream.get()) == cudaSuccess;
}

void LaunchGraph::Destroy::operator()(CUgraphExec_st* graph) const {
  if (!gpus_abandoned()) (void)cudaGraphExecDestroy(graph);
}

}  // namespace warpline::gpu
