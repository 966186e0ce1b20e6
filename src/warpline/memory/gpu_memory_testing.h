// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>

#include "warpline/memory/gpu_memory.h"

namespace warpline::memory {

/// For tests: ordinary memory that plays a GPU's, and pins that only count. Refuses when told to.
class MadeUpGpus {
 public:
  [[nodiscard]] GpuMemory memory() {
    return {.allocate = [this](int gpu, Bytes size, Bytes alignment) { return allocate(gpu, size, alignment); },
            .pin = [this](int gpu, std::span<std::byte> pages) { return pin(gpu, pages); }};
  }

  std::size_t pinned = 0;     ///< bytes, now
  std::size_t allocated = 0;  ///< bytes, now
  std::set<int> gpus;         ///< that were asked for memory or pins
  std::size_t pins_left = SIZE_MAX;
  std::size_t allocations_left = SIZE_MAX;

 private:
  Result<std::shared_ptr<void>> pin(int gpu, std::span<std::byte> pages) {
    if (pins_left-- == 0) {
      pins_left = 0;
      return environment_error("host memory", "the memlock limit is 8 MiB", "ulimit -l unlimited");
    }
    gpus.insert(gpu);
    pinned += pages.size();
    return std::shared_ptr<void>(pages.data(), [this, size = pages.size()](void* start) {
      // Still the owner's: to let go of what has been unmapped would be a fault.
      *static_cast<volatile char*>(start) = 0;
      pinned -= size;
    });
  }

  Result<OwnedMemory> allocate(int gpu, Bytes size, Bytes alignment) {
    if (allocations_left-- == 0) {
      allocations_left = 0;
      return environment_error("GPU memory", "of 8 MiB 1 are free", "free some");
    }
    // Nothing but mmap: a GPU's memory is none that an allocator knows.
    const std::size_t whole = size.value + alignment.value;
    void* const start = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const std::uintptr_t skip = alignment.value - reinterpret_cast<std::uintptr_t>(start) % alignment.value;
    gpus.insert(gpu);
    allocated += size.value;
    return OwnedMemory{{static_cast<std::byte*>(start) + skip, size.value},
                       std::shared_ptr<void>(start, [this, whole, size](void* memory) {
                         munmap(memory, whole);
                         allocated -= size.value;
                       })};
  }
};

}  // namespace warpline::memory
