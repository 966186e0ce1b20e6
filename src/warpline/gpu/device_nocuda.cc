// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/device.h"

namespace warpline::gpu {

bool built_with_cuda() { return false; }
Result<std::vector<GpuFacts>> list_gpus() { return built_without_cuda("no GPU can be used"); }
Result<GpuFacts> find_gpu(int ordinal) { return built_without_cuda(fmt::format("GPU {}", ordinal)); }
Result<void> use_gpu(int ordinal) { return built_without_cuda(fmt::format("GPU {}", ordinal)); }
CUctx_st* context_here() { return nullptr; }
UseContext::UseContext(CUctx_st* /*context*/) {}
UseContext::~UseContext() = default;

}  // namespace warpline::gpu
