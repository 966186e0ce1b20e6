// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "warpline/base/result.h"
#include "warpline/base/units.h"

namespace warpline::gpu {

/// `code` is a cudaError_t other than cudaSuccess. Takes it off the thread's record, so that no later call reports it.
[[nodiscard]] Error cuda_error(std::string what, int code);

/// Why `size` bytes of host memory were not pinned; `lockable` is the soft memlock limit.
[[nodiscard]] Error pinning_error(std::string what, int code, Bytes size, Bytes lockable);
/// The soft limit of locked memory (RLIMIT_MEMLOCK) of this process; the largest number where there is none.
[[nodiscard]] Bytes lockable_memory();

/// What everything that needs a GPU answers in a program built without nvcc.
[[nodiscard]] Error built_without_cuda(std::string what);

}  // namespace warpline::gpu
