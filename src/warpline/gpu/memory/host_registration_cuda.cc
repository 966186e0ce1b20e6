// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>

#include <cuda_runtime_api.h>

#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/host_registration.h"

namespace warpline::gpu {
namespace {

std::span<std::byte> whole_pages(std::span<std::byte> memory) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t before = start % page;
  const std::size_t size = (before + memory.size() + page - 1) / page * page;
  return {memory.data() - before, size};
}

}  // namespace

Result<HostRegistration> HostRegistration::create(std::span<std::byte> memory) {
  const std::span<std::byte> pages = whole_pages(memory);
  const std::string what = fmt::format("host memory of {} bytes for the GPU", pages.size());
  const cudaError_t code =
      cudaHostRegister(pages.data(), pages.size(), cudaHostRegisterMapped | cudaHostRegisterPortable);
  if (code != cudaSuccess) return pinning_error(what, code, Bytes{pages.size()}, lockable_memory());
  HostRegistration registration(pages.data(), pages.size());
  void* device = nullptr;
  if (const cudaError_t problem = cudaHostGetDevicePointer(&device, pages.data(), 0); problem != cudaSuccess) {
    return cuda_error(what, problem);
  }
  if (device != pages.data()) {
    return environment_error(what, "the GPU sees registered memory at another address than the CPU",
                             "use a GPU of compute capability 6.0 or later on Linux");
  }
  return registration;
}

void HostRegistration::Unregister::operator()(std::byte* start) const {
  if (!gpus_abandoned()) (void)cudaHostUnregister(start);
}

}  // namespace warpline::gpu
