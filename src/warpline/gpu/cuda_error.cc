// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/cuda_error.h"

#include <sys/resource.h>

#include <utility>

namespace warpline::gpu {

Error built_without_cuda(std::string what) {
  return environment_error(
      std::move(what), "the program was built without CUDA",
      "run setup/nvcc and build again, or use `--engine inline` or `--engine thread` and `-m host`");
}

Bytes lockable_memory() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {UINT64_MAX};
  return {limit.rlim_cur};
}

}  // namespace warpline::gpu
