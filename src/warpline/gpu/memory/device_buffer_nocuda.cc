// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/memory/device_buffer.h"

namespace warpline::gpu {

Result<DeviceBuffer> DeviceBuffer::create(Bytes size, Bytes) {
  return built_without_cuda(fmt::format("GPU memory of {} bytes", size.value));
}
void DeviceBuffer::Free::operator()(void*) const {}

}  // namespace warpline::gpu
