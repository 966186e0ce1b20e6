// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/driver_call.h"

namespace warpline::gpu {
namespace {

/// All kernels are loaded with the context: loading one later waits for those that run, and a persistent one never
/// ends.
void load_eagerly() {
  static std::once_flag once;
  std::call_once(once, [] { setenv("CUDA_MODULE_LOADING", "EAGER", 0); });
}

int attribute(int ordinal, cudaDeviceAttr which) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, which, ordinal) == cudaSuccess ? value : 0;
}

/// The runtime does not tell; the driver, which it has loaded, does.
bool has_dma_buf(int ordinal) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  if (cudaGetDriverEntryPointByVersion("cuDeviceGetAttribute", &function, 12000, cudaEnableDefault, &found) !=
          cudaSuccess ||
      found != cudaDriverEntryPointSuccess) {
    return false;
  }
  int value = 0;
  const auto get_attribute = reinterpret_cast<decltype(&cuDeviceGetAttribute)>(function);
  return get_attribute(&value, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, ordinal) == CUDA_SUCCESS && value != 0;
}

Result<GpuFacts> read_facts(int ordinal) {
  cudaDeviceProp properties{};
  if (const cudaError_t code = cudaGetDeviceProperties(&properties, ordinal); code != cudaSuccess) {
    return cuda_error(fmt::format("GPU {}", ordinal), code);
  }
  GpuFacts facts;
  facts.ordinal = ordinal;
  facts.name = properties.name;
  facts.pci =
      fmt::format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
  facts.multiprocessors = properties.multiProcessorCount;
  facts.memory = Bytes{properties.totalGlobalMem};
  facts.compute_major = properties.major;
  facts.compute_minor = properties.minor;
  (void)cudaDriverGetVersion(&facts.driver_version);
  (void)cudaRuntimeGetVersion(&facts.runtime_version);
  const PciFacts bus = read_pci_facts(facts.pci);
  facts.node = bus.node;
  facts.link_now = bus.link_now;
  facts.link_most = bus.link_most;
  facts.host_pointers_usable = attribute(ordinal, cudaDevAttrCanUseHostPointerForRegisteredMem) != 0;
  facts.gpudirect = attribute(ordinal, cudaDevAttrGPUDirectRDMASupported) != 0;
  facts.dma_buf = has_dma_buf(ordinal);
  std::error_code ignored;
  facts.peermem = std::filesystem::exists("/sys/module/nvidia_peermem", ignored);
  return facts;
}

Result<int> count_gpus() {
  load_eagerly();
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess) return cuda_error("no GPU can be used", code);
  if (count == 0) return cuda_error("no GPU can be used", cudaErrorNoDevice);
  return count;
}

Error no_such_gpu(int ordinal, int count) {
  return environment_error(fmt::format("GPU {}", ordinal),
                           count == 1 ? "there is only GPU 0" : fmt::format("there are GPUs 0 to {}", count - 1),
                           "`warpline doctor` lists them; choose with --gpu");
}

}  // namespace

bool built_with_cuda() { return true; }

Result<std::vector<GpuFacts>> list_gpus() {
  WARPLINE_TRY(const int count, count_gpus());
  std::vector<GpuFacts> gpus;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    WARPLINE_TRY(GpuFacts facts, read_facts(ordinal));
    gpus.push_back(std::move(facts));
  }
  return gpus;
}

Result<GpuFacts> find_gpu(int ordinal) {
  WARPLINE_TRY(const int count, count_gpus());
  if (ordinal < 0 || ordinal >= count) return no_such_gpu(ordinal, count);
  return read_facts(ordinal);
}

Result<void> use_gpu(int ordinal) {
  WARPLINE_TRY(const int count, count_gpus());
  if (ordinal < 0 || ordinal >= count) return no_such_gpu(ordinal, count);
  if (const cudaError_t code = cudaSetDevice(ordinal); code != cudaSuccess) {
    return cuda_error(fmt::format("GPU {}", ordinal), code);
  }
  return {};
}

CUctx_st* context_here() {
  static const auto get = reinterpret_cast<decltype(&cuCtxGetCurrent)>(driver_call("cuCtxGetCurrent"));
  CUcontext context = nullptr;
  if (get != nullptr) (void)get(&context);
  return context;
}

// Not by cudaSetDevice(), which would make a context on the GPU that was the thread's before, had it none.
UseContext::UseContext(CUctx_st* context) {
  static const auto push = reinterpret_cast<decltype(&cuCtxPushCurrent)>(driver_call("cuCtxPushCurrent"));
  used_ = push != nullptr && push(context) == CUDA_SUCCESS;
}

UseContext::~UseContext() {
  static const auto pop = reinterpret_cast<decltype(&cuCtxPopCurrent)>(driver_call("cuCtxPopCurrent"));
  CUcontext popped = nullptr;
  if (used_) (void)pop(&popped);
}

}  // namespace warpline::gpu
