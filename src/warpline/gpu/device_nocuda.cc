// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/device.h"

namespace warpline::gpu {

bool built_with_cuda() { return false; }
Result<std::vector<GpuFacts>> list_gpus() { return built_without_cuda("no GPU can be used"); }
Result<GpuFacts> find_gpu(int ordinal) { return built_without_cuda(fmt::format("GPU {}", ordinal)); }
Result<void> use_gpu(int ordinal) { return built_without_cuda(fmt::format("GPU {}", ordinal)); }
int gpu_here() { return 0; }
UseGpuHere::UseGpuHere(int /*ordinal*/) {}
UseGpuHere::~UseGpuHere() = default;

}  // namespace warpline::gpu
