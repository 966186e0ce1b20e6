// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include <cuda_runtime_api.h>

#include "warpline/gpu/cuda_error.h"

namespace warpline::gpu {
namespace {

/// The CUDA version `number` as people write it.
std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

Error driver_error(std::string what) {
  int driver = 0;
  int runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  (void)cudaGetLastError();
  if (driver == 0) {
    return environment_error(std::move(what), "no NVIDIA driver is loaded",
                             "sudo apt-get install nvidia-driver (or from https://www.nvidia.com/drivers); without a "
                             "GPU use `--engine inline` or `--engine thread` and `-m host`");
  }
  return environment_error(
      std::move(what),
      fmt::format("the driver knows CUDA {} and the program was built with {}", version(driver), version(runtime)),
      fmt::format("install a driver for CUDA {} from https://www.nvidia.com/drivers, or build "
                  "with an older nvcc",
                  version(runtime)));
}

std::string fix_for(cudaError_t code) {
  switch (code) {
    case cudaErrorNoDevice:
      return "look for the GPU with nvidia-smi, and at CUDA_VISIBLE_DEVICES";
    case cudaErrorInvalidDevice:
      return "`warpline doctor` lists the GPUs";
    case cudaErrorMemoryAllocation:
      return "free GPU memory (nvidia-smi shows who has it), or use fewer or smaller buffers: --pool-size, --data-room";
    case cudaErrorOperatingSystem:
    case cudaErrorUnknown:
    case cudaErrorInitializationError:
      return "sudo nvidia-modprobe -u -c0, and see who may open /dev/nvidia*";
    case cudaErrorSystemNotReady:
      return "sudo systemctl start nvidia-fabricmanager";
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
      return "reboot into the driver that is installed, and take CUDA's compatibility libraries off LD_LIBRARY_PATH";
    case cudaErrorDevicesUnavailable:
      return "another process has the GPU for itself: sudo nvidia-smi -c DEFAULT";
    case cudaErrorNoKernelImageForDevice:
      return "build with -DCMAKE_CUDA_ARCHITECTURES set to the GPU's compute capability";
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
      return "start the program again; `dmesg | grep Xid` says what the GPU met";
    default:
      return "`dmesg | grep -i nvrm` may say more";
  }
}

}  // namespace

Error cuda_error(std::string what, int code) {
  const auto error = static_cast<cudaError_t>(code);
  (void)cudaGetLastError();
  if (error == cudaErrorInsufficientDriver || error == cudaErrorStubLibrary) return driver_error(std::move(what));
  return environment_error(std::move(what), fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error)),
                           fix_for(error));
}

Error pinning_error(std::string what, int code, Bytes size, Bytes lockable) {
  const auto error = static_cast<cudaError_t>(code);
  const bool of_memory = error == cudaErrorMemoryAllocation || error == cudaErrorInvalidValue ||
                         error == cudaErrorOperatingSystem || error == cudaErrorNotPermitted ||
                         error == cudaErrorUnknown;
  if (!of_memory) return cuda_error(std::move(what), code);
  (void)cudaGetLastError();
  if (lockable.value < size.value) {
    return environment_error(
        std::move(what),
        fmt::format("{} MiB are to be pinned and the memlock limit is {} MiB ({})",
                    (size.value + kMebibyte - 1) / kMebibyte, lockable.value / kMebibyte, cudaGetErrorName(error)),
        "ulimit -l unlimited (as root, or in /etc/security/limits.conf)");
  }
  return environment_error(std::move(what),
                           fmt::format("{} MiB could not be pinned: {} ({})", (size.value + kMebibyte - 1) / kMebibyte,
                                       cudaGetErrorString(error), cudaGetErrorName(error)),
                           "free memory, or use fewer or smaller buffers: --pool-size, --data-room");
}

}  // namespace warpline::gpu
