// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/memory/host_registration.h"

namespace warpline::gpu {

Result<HostRegistration> HostRegistration::create(std::span<std::byte> memory) {
  return built_without_cuda(fmt::format("host memory of {} bytes for the GPU", memory.size()));
}
void HostRegistration::Unregister::operator()(std::byte*) const {}

}  // namespace warpline::gpu
