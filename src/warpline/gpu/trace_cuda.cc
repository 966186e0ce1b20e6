// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include "warpline/gpu/trace.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
#define WARPLINE_WITHOUT_NVTX
#endif

// Declared in cuda_profiler_api.h, which some toolkits installed from wheels lack; the runtime always has both.
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();

namespace warpline::gpu {

#ifdef WARPLINE_WITHOUT_NVTX
Result<void> start_tracing() {
  return environment_error("NVTX ranges", "the program was built with a CUDA toolkit that lacks NVTX's headers",
                           "install them (cuda-nvtx) or run setup/nvcc, and build again");
}
void TraceRange::push(const char*) {}
void TraceRange::pop() {}
#else
Result<void> start_tracing() {
  trace_enabled.store(true, std::memory_order_relaxed);
  return {};
}
void TraceRange::push(const char* name) { nvtxRangePushA(name); }
void TraceRange::pop() { nvtxRangePop(); }
#endif

void start_profiler_capture() {
  (void)cudaProfilerStart();
  (void)cudaGetLastError();
}

void stop_profiler_capture() {
  (void)cudaProfilerStop();
  (void)cudaGetLastError();
}

}  // namespace warpline::gpu
