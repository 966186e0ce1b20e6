// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"

namespace warpline {

/// Kernels that stay on one GPU at a time, at most. Each holds a channel of the context, and what comes into a held
/// channel waits for ever: CUDA has 32 (CUDA C++ Programming Guide, CUDA_DEVICE_MAX_CONNECTIONS); an H200 stood still
/// at the 36th.
inline constexpr std::uint32_t kResidentKernels = 32;

/// The place of one kernel that stays, given back when destroyed. Any thread.
class ResidentKernel {
 public:
  /// An environment error when all places of that GPU are taken.
  [[nodiscard]] static Result<ResidentKernel> claim(int gpu);

 private:
  struct Release {
    void operator()(std::uint32_t* taken) const;
  };
  explicit ResidentKernel(std::uint32_t* taken) : taken_(taken) {}

  std::unique_ptr<std::uint32_t, Release> taken_;
};

}  // namespace warpline
