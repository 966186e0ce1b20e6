// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
namespace warpline {

/// Nanoseconds of the device's own clock.
__device__ inline std::uint64_t device_nanos() {
  std::uint64_t nanos;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanos));
  return nanos;
}

}  // namespace warpline
#endif
