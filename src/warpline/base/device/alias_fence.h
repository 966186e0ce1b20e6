// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/base/host_device.h"

namespace warpline {

/// Orders the calling thread's accesses to memory that is mapped at several addresses of the GPU (CUDA C++ Programming
/// Guide, virtual aliasing support; PTX, membar/fence: proxy.alias). The writer has it between its writes and the
/// release, the reader between the acquire and its reads. Nothing on the host.
WARPLINE_HD inline void fence_aliases() {
#if defined(__CUDA_ARCH__)
  asm volatile("fence.proxy.alias;" ::: "memory");
#endif
}

}  // namespace warpline
