// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cuda_runtime_api.h>

#include "gpu/cuda_error.h"
#include "gpu/gpu_place.h"

namespace warpline {

Result<GpuPlace> GpuPlace::claim(int gpu, const KernelLaunch& kernel, std::uint32_t ctas) {
  int multiprocessors = 0;
  if (const cudaError_t code = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, gpu);
      code != cudaSuccess) {
    return cuda_error(fmt::format("GPU {}", gpu), code);
  }
  WARPLINE_TRY(const std::uint32_t most, kernel.ctas_per_multiprocessor());
  return claim(gpu, static_cast<std::uint32_t>(multiprocessors),
               {.kernel = kernel.kernel(), .ctas = ctas, .ctas_per_multiprocessor = most});
}

}  // namespace warpline
