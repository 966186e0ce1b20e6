// SPDX-License-Identifier: Apache-2.0
#include "gpu/resident_kernel.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

namespace warpline {
namespace {

std::mutex mutex;
std::map<int, std::uint32_t> taken_of;  ///< by ordinal; nodes stay where they are

}  // namespace

Result<ResidentKernel> ResidentKernel::claim(int gpu) {
  const std::lock_guard lock(mutex);
  std::uint32_t& taken = taken_of[gpu];
  if (taken == kResidentKernels) {
    return environment_error(fmt::format("GPU {}", gpu),
                             fmt::format("{} kernels stay on it, which is its limit", taken),
                             "use fewer pipelines, or several GPUs: a pipeline takes one, and two more with -m device "
                             "on a software NIC");
  }
  ++taken;
  return ResidentKernel(&taken);
}

void ResidentKernel::Release::operator()(std::uint32_t* taken) const {
  const std::lock_guard lock(mutex);
  --*taken;
}

}  // namespace warpline
