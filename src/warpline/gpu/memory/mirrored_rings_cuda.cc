// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "warpline/base/units.h"
#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/driver_call.h"
#include "warpline/gpu/memory/mirrored_rings.h"

namespace warpline::gpu {
namespace {

template <typename F>
F entry(const char* name) {
  return reinterpret_cast<F>(driver_call(name));
}

/// The driver's calls for memory whose addresses are chosen, which the CUDA runtime does not have; null where there are
/// none.
struct AddressCalls {
  decltype(&cuMemGetAllocationGranularity) granularity =
      entry<decltype(&cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
  decltype(&cuMemAddressReserve) reserve = entry<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(&cuMemAddressFree) free = entry<decltype(&cuMemAddressFree)>("cuMemAddressFree");
  decltype(&cuMemCreate) create = entry<decltype(&cuMemCreate)>("cuMemCreate");
  decltype(&cuMemRelease) release = entry<decltype(&cuMemRelease)>("cuMemRelease");
  decltype(&cuMemMap) map = entry<decltype(&cuMemMap)>("cuMemMap");
  decltype(&cuMemUnmap) unmap = entry<decltype(&cuMemUnmap)>("cuMemUnmap");
  decltype(&cuMemSetAccess) set_access = entry<decltype(&cuMemSetAccess)>("cuMemSetAccess");

  [[nodiscard]] bool complete() const {
    return granularity != nullptr && reserve != nullptr && free != nullptr && create != nullptr && release != nullptr &&
           map != nullptr && unmap != nullptr && set_access != nullptr;
  }
};

const AddressCalls& calls() {
  static const AddressCalls found;
  return found;
}

CUdeviceptr address(const std::uint8_t* at) { return reinterpret_cast<CUdeviceptr>(at); }

Error refused(const std::string& what, const char* call, CUresult code) {
  const bool full = code == CUDA_ERROR_OUT_OF_MEMORY;
  return environment_error(what, fmt::format("{} says {}{}", call, static_cast<int>(code), full ? ", no memory" : ""),
                           full ? "ask for fewer connections or smaller rings (nvidia-smi shows who has the memory)"
                                : "run `warpline doctor`");
}

}  // namespace

MirroredRings::Mapping::~Mapping() {
  if (gpus_abandoned()) return;
  for (std::uint32_t i = 0; i < mapped; ++i) (void)calls().unmap(address(begin_ + i * bytes_), bytes_);
  (void)calls().free(address(begin_), total());
}

Result<MirroredRings> MirroredRings::create(int gpu, std::uint32_t count, std::size_t bytes) {
  const std::string what = fmt::format("cannot map {} rings of {} bytes in GPU memory", count, bytes);
  WARPLINE_CHECK(use_gpu(gpu));
  // The runtime makes the GPU's context by the first call that needs it.
  if (const cudaError_t code = cudaFree(nullptr); code != cudaSuccess) return cuda_error(what, code);
  if (!calls().complete()) {
    return environment_error(what, "the driver does not map memory twice", "install a newer NVIDIA driver");
  }
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu};
  std::size_t page = 0;
  if (const CUresult code = calls().granularity(&page, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM); code != CUDA_SUCCESS) {
    return refused(what, "cuMemGetAllocationGranularity", code);
  }
  if (bytes == 0 || bytes % page != 0) {
    return usage_error(what, fmt::format("the GPU maps memory in pages of {} KiB", page >> 10),
                       fmt::format("use rings of {} KiB or a power of two more", page >> 10));
  }
  CUdeviceptr begin = 0;
  if (const CUresult code = calls().reserve(&begin, 2 * bytes * count, 0, 0, 0); code != CUDA_SUCCESS) {
    return refused(what, "cuMemAddressReserve", code);
  }
  auto mapping = std::make_unique<Mapping>(reinterpret_cast<std::uint8_t*>(begin), count, bytes);
  for (std::uint32_t i = 0; i < count; ++i) {
    CUmemGenericAllocationHandle memory{};
    if (const CUresult code = calls().create(&memory, bytes, &kind, 0); code != CUDA_SUCCESS) {
      return refused(what, "cuMemCreate", code);
    }
    CUresult code = CUDA_SUCCESS;
    for (int half = 0; half < 2 && code == CUDA_SUCCESS; ++half) {
      code = calls().map(begin + mapping->mapped * bytes, bytes, 0, memory, 0);
      if (code == CUDA_SUCCESS) ++mapping->mapped;
    }
    (void)calls().release(memory);  // what is mapped stays
    if (code != CUDA_SUCCESS) return refused(what, "cuMemMap", code);
  }
  CUmemAccessDesc access{};
  access.location = kind.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (const CUresult code = calls().set_access(begin, mapping->total(), &access, 1); code != CUDA_SUCCESS) {
    return refused(what, "cuMemSetAccess", code);
  }
  WARPLINE_CHECK(clear_and_wait(mapping->begin(), mapping->total()));
  return MirroredRings(std::move(mapping));
}

}  // namespace warpline::gpu
