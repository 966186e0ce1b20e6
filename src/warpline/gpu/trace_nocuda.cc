// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/trace.h"

namespace warpline::gpu {

Result<void> start_tracing() { return built_without_cuda("NVTX ranges"); }
void TraceRange::push(const char*) {}
void TraceRange::pop() {}
void start_profiler_capture() {}
void stop_profiler_capture() {}

}  // namespace warpline::gpu
