// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace warpline {

/// Memory of many megabytes that is gone through at random: in huge pages where the kernel has some to give (madvise,
/// MADV_HUGEPAGE), so that a miss of the cache is not a walk through page tables as well.
template <typename T>
struct LargeAllocator {
  using value_type = T;

  LargeAllocator() = default;
  template <typename U>
  LargeAllocator(const LargeAllocator<U>&) {}

  [[nodiscard]] T* allocate(std::size_t n) {
    const std::size_t bytes = n * sizeof(T);
    if (bytes < kHugePage) return std::allocator<T>().allocate(n);
    const std::size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    void* const memory = ::operator new(rounded, std::align_val_t{kHugePage});
    static_cast<void>(madvise(memory, rounded, MADV_HUGEPAGE));  // without huge pages it works, too
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t n) {
    if (n * sizeof(T) < kHugePage) {
      std::allocator<T>().deallocate(memory, n);
    } else {
      ::operator delete(memory, std::align_val_t{kHugePage});
    }
  }
  template <typename U>
  bool operator==(const LargeAllocator<U>&) const {
    return true;
  }

 private:
  static constexpr std::size_t kHugePage = 2 << 20;
};

template <typename T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace warpline
