// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace warpline {

// How threads that poll share a core. Under real-time scheduling (SCHED_FIFO, SCHED_RR) the kernel runs no thread of
// lower priority, and under SCHED_FIFO none of the same, until the one that runs sleeps or yields.

/// The calling thread is scheduled in real time.
[[nodiscard]] bool is_real_time();

/// Lets other threads run on the calling thread's core: those of the same priority at each call; under real-time
/// scheduling, by a sleep of 50 us at every 16th call, all others too.
void give_way();

/// What a thread that found nothing to do calls. `shares_core`: other threads need its core.
inline void idle(bool shares_core) {
  if (shares_core) {
    give_way();
    return;
  }
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// The turns of a polling loop. One that always finds work gives way too where it must: under real-time scheduling on a
/// core that others need, for the first 100 us of every 2 ms of the monotonic clock. All loops of a core sleep at the
/// same time, or threads of lower priority would still not run. Owner: the thread of the loop.
class Turns {
 public:
  explicit Turns(bool shares_core) : shares_core_(shares_core) {}

  /// After each turn; `worked`: it found something to do.
  void end(bool worked) {
    if (!worked) {
      idle(shares_core_);
    } else if (shares_core_ && ++count_ % kTurnsALook == 0) [[unlikely]] {
      look();
    }
  }

 private:
  static constexpr std::uint32_t kTurnsALook = 8;

  void look();

  bool shares_core_;
  std::uint32_t count_ = 0;
  std::int64_t period_ = 0;  ///< the last one in which look() acted
};

}  // namespace warpline
