// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cuda_runtime_api.h>

#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/gpu_place.h"

namespace warpline::gpu {
namespace {

/// A multiprocessor divides its memory between L1 cache and shared memory, and divides it anew only while nothing runs
/// on it (CUDA C++ Programming Guide, shared memory of compute capability 8.x and 9.0). Beside kernels that stay, one
/// that asks for another division waits for ever, whatever else is free: an H200 did so with CTAs of 32 threads, of
/// which many fit a multiprocessor, beside the larger ones that copy. So all ask for the same: 64 of 228 KiB, 2 KiB for
/// each of the 32 CTAs that a multiprocessor holds at most.
constexpr int kSharedPercent = 28;

}  // namespace

Result<GpuPlace> GpuPlace::claim(int gpu, const KernelLaunch& kernel, std::uint32_t ctas) {
  int multiprocessors = 0;
  if (const cudaError_t code = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, gpu);
      code != cudaSuccess) {
    return cuda_error(fmt::format("GPU {}", gpu), code);
  }
  if (const cudaError_t code =
          cudaFuncSetAttribute(kernel.kernel(), cudaFuncAttributePreferredSharedMemoryCarveout, kSharedPercent);
      code != cudaSuccess) {
    return cuda_error("a kernel's shared memory", code);
  }
  WARPLINE_TRY(const std::uint32_t most, kernel.ctas_per_multiprocessor());
  return claim(gpu, static_cast<std::uint32_t>(multiprocessors),
               {.kernel = kernel.kernel(), .ctas = ctas, .ctas_per_multiprocessor = most});
}

}  // namespace warpline::gpu
