// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "warpline/base/result.h"
#include "warpline/base/units.h"

namespace warpline::memory {

/// Memory that is given back when its owner goes.
struct OwnedMemory {
  std::span<std::byte> bytes;
  std::shared_ptr<void> owner;
};

/// `size` bytes aligned to `alignment`, in the memory of the GPU with that ordinal.
using AllocateMemory = std::function<Result<OwnedMemory>(int gpu, Bytes size, Bytes alignment)>;
/// Makes whole pages of the caller's readable and writable for every GPU, for as long as what is returned lives; `gpu`
/// is one that will.
using PinMemory = std::function<Result<std::shared_ptr<void>>(int gpu, std::span<std::byte> pages)>;

/// How pools get at GPUs. Tests put ordinary memory in their place.
struct GpuMemory {
  AllocateMemory allocate;
  PinMemory pin;

  /// The machine's own, through CUDA.
  [[nodiscard]] static GpuMemory of_machine();
};

}  // namespace warpline::memory
