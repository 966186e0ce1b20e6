// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include "warpline/gpu/driver_call.h"

namespace warpline::gpu {

void* driver_call(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t code = cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
  return code == cudaSuccess && found == cudaDriverEntryPointSuccess ? function : nullptr;
}

}  // namespace warpline::gpu
