// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include "gpu/cuda_error.h"
#include "gpu/device.h"
#include "gpu/kernel_launch.h"

namespace warpline {

bool KernelLaunch::operator()(const CudaStream& stream) {
  return cudaLaunchKernel(kernel_, dim3(ctas_), dim3(threads_), addresses_.data(), 0, stream.get()) == cudaSuccess;
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
  return LaunchGraph(executable);
}

bool LaunchGraph::operator()(const CudaStream& stream) {
  return cudaGraphLaunch(graph_.get(), stream.get()) == cudaSuccess;
}

void LaunchGraph::Destroy::operator()(CUgraphExec_st* graph) const {
  if (!gpus_abandoned()) (void)cudaGraphExecDestroy(graph);
}

}  // namespace warpline
