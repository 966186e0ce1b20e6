// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/gpu/pci_link.h"

struct CUctx_st;

namespace warpline::gpu {

/// One GPU, as CUDA and the PCI bus describe it.
struct GpuFacts {
  int ordinal = 0;  ///< CUDA's number, after CUDA_VISIBLE_DEVICES
  std::string name;
  std::string pci;  ///< "0000:17:00.0"
  int multiprocessors = 0;
  Bytes memory{0};
  int node = -1;  ///< NUMA node of its PCI slot; negative: unknown
  int compute_major = 0;
  int compute_minor = 0;
  int driver_version = 0;   ///< newest CUDA that the driver knows: 1000 x major + 10 x minor
  int runtime_version = 0;  ///< CUDA that the program was built with, in the same form
  PciLink link_now;         ///< idle GPUs slow it down
  PciLink link_most;
  bool host_pointers_usable = false;  ///< registered host memory has one address for CPU and GPU
  bool gpudirect = false;             ///< its memory can be opened to NICs
  bool dma_buf = false;               ///< through dma-buf
  bool peermem = false;               ///< nvidia-peermem is loaded: NICs of the verbs kind reach its memory
};

/// Whether this program has code for GPUs in it.
[[nodiscard]] bool built_with_cuda();

/// Every GPU that CUDA shows this process. No driver, one that is too old, and a driver without a GPU are environment
/// errors.
[[nodiscard]] Result<std::vector<GpuFacts>> list_gpus();

/// An environment error names the ordinals that there are.
[[nodiscard]] Result<GpuFacts> find_gpu(int ordinal);

/// Makes it the calling thread's GPU, which every owner made by that thread then uses. Memory and streams may be used
/// and released by any thread.
[[nodiscard]] Result<void> use_gpu(int ordinal);

/// Returns the calling thread's context: of its GPU, once something was made there.
[[nodiscard]] CUctx_st* context_here();

/// Makes a context the calling thread's for as long as this lives, whichever that has, or none, before and after.
class UseContext {
 public:
  explicit UseContext(CUctx_st* context);
  UseContext(const UseContext&) = delete;
  UseContext& operator=(const UseContext&) = delete;
  ~UseContext();

 private:
  [[maybe_unused]] bool used_ = false;
};

/// After a kernel that never ends or a GPU that is lost: releasing memory or streams would wait for ever, so from here
/// on their owners leave them to the end of the process.
void abandon_gpus();
[[nodiscard]] bool gpus_abandoned();

}  // namespace warpline::gpu
