// SPDX-License-Identifier: Apache-2.0
#include "warpline/memory/gpu_memory.h"

#include <utility>

#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/gpu/memory/host_registration.h"

namespace warpline::memory {
namespace {

Result<OwnedMemory> allocate_on_gpu(int gpu, Bytes size, Bytes alignment) {
  WARPLINE_CHECK(gpu::use_gpu(gpu));
  WARPLINE_TRY(gpu::DeviceBuffer buffer, gpu::DeviceBuffer::create(size, alignment));
  const auto owner = std::make_shared<gpu::DeviceBuffer>(std::move(buffer));
  return OwnedMemory{{owner->data(), owner->size()}, owner};
}

Result<std::shared_ptr<void>> pin_for_gpus(int gpu, std::span<std::byte> pages) {
  WARPLINE_CHECK(gpu::use_gpu(gpu));
  WARPLINE_TRY(gpu::HostRegistration registration, gpu::HostRegistration::create(pages));
  return std::shared_ptr<void>(std::make_shared<gpu::HostRegistration>(std::move(registration)));
}

}  // namespace

GpuMemory GpuMemory::of_machine() { return {.allocate = allocate_on_gpu, .pin = pin_for_gpus}; }

}  // namespace warpline::memory
