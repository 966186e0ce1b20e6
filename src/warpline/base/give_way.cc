// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/give_way.h"

#include <sched.h>

#include <ctime>

namespace warpline {
namespace {

constexpr std::uint32_t kYieldsANap = 16;
constexpr std::int64_t kNap = 50'000;        // ns
constexpr std::int64_t kPeriod = 2'000'000;  // ns
constexpr std::int64_t kWindow = 100'000;    // ns, at the beginning of a period
constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

bool is_real_time() {
  const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  return policy == SCHED_FIFO || policy == SCHED_RR;
}

void give_way() {
  thread_local std::uint32_t calls = 0;
  if (++calls % kYieldsANap == 0 && is_real_time()) {
    const timespec nap{0, kNap};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
  } else {
    sched_yield();
  }
}

void Turns::look() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = time.tv_sec * kSecond + time.tv_nsec;
  const std::int64_t period = now / kPeriod;
  if (period == period_) return;
  period_ = period;
  if (!is_real_time()) return;
  const std::int64_t end = period * kPeriod + kWindow;
  if (now < end) {
    time = {end / kSecond, end % kSecond};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
  } else {
    sched_yield();  // threads of the same priority kept this one from the window
  }
}

}  // namespace warpline
