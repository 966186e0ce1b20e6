// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/wake_up.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace warpline::transport {

Result<std::unique_ptr<WakeUp>> WakeUp::make() {
  const int descriptor = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (descriptor < 0) return environment_error("eventfd", std::strerror(errno), "raise `ulimit -n`");
  return std::unique_ptr<WakeUp>(new WakeUp(descriptor));
}

WakeUp::~WakeUp() { ::close(descriptor_); }

void WakeUp::wake() {
  // Either this thread sees that the other sleeps, or that one sees the work: after it has said that it is awake.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (state_.load(std::memory_order_relaxed) == woken) return;
  if (state_.exchange(woken, std::memory_order_seq_cst) != asleep) return;
  const int kept = errno;
  const std::uint64_t one = 1;
  (void)!::write(descriptor_, &one, sizeof(one));
  errno = kept;
}

bool WakeUp::begin_sleep() {
  std::uint32_t state = awake;
  if (state_.compare_exchange_strong(state, asleep, std::memory_order_seq_cst)) return true;
  state_.exchange(awake, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return false;
}

void WakeUp::end_sleep() {
  if (state_.exchange(awake, std::memory_order_seq_cst) == woken) ++unread_;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Who woke this thread may be about to write: then a later sleep ends at once, and the count is read after it.
  std::uint64_t written = 0;
  if (unread_ != 0 && ::read(descriptor_, &written, sizeof(written)) == sizeof(written)) unread_ -= written;
}

}  // namespace warpline::transport
