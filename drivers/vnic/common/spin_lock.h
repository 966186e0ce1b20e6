// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace warpline::vnic {

/// For critical sections as short as a burst. DPDK's own is written in assembly on x86, which thread sanitizers cannot
/// see through. A BasicLockable.
class SpinLock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) {
      while (held_.load(std::memory_order_relaxed)) {
#if defined(__x86_64__)
        _mm_pause();
#endif
      }
    }
  }
  [[nodiscard]] bool try_lock() {
    return !held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire);
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace warpline::vnic
