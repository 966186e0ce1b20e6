// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "warpline/base/host_device.h"

#if defined(__CUDACC__)
#include "warpline/base/device/atomic_words.cuh"
#endif

namespace warpline {

// Words that two share, such as an assembler and its consumer: one of them writes, the other reads, and either may be a
// GPU, so that the scope is the system.

/// Returns the word. What its writer wrote before is visible.
[[nodiscard]] WARPLINE_HD inline std::uint64_t load_acquire(std::uint64_t* word) {
#if defined(__CUDA_ARCH__)
  return SystemWord(*word).load_acquire();
#else
  return std::atomic_ref(*word).load(std::memory_order_acquire);
#endif
}

/// Writes the word, by its one writer. What was written before is visible to who reads it.
WARPLINE_HD inline void store_release(std::uint64_t* word, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
  SystemWord(*word).store_release(value);
#else
  std::atomic_ref(*word).store(value, std::memory_order_release);
#endif
}

/// Orders the calling thread's accesses to memory that is mapped at several addresses of the GPU (CUDA C++ Programming
/// Guide, virtual aliasing support; PTX, membar/fence: proxy.alias). The writer has it between its writes and the
/// release, the reader between the acquire and its reads. Nothing on the host.
WARPLINE_HD inline void fence_aliases() {
#if defined(__CUDA_ARCH__)
  asm volatile("fence.proxy.alias;" ::: "memory");
#endif
}

/// Adds to a count that one thread at a time writes and any thread of the host reads.
WARPLINE_HD inline void add_to(std::uint64_t& count, std::uint64_t n) {
#if defined(__CUDA_ARCH__)
  count += n;
#else
  const std::atomic_ref<std::uint64_t> word(count);
  word.store(word.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
#endif
}

}  // namespace warpline
