// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/completion_queue.h"

#include <poll.h>

#include <thread>
#include <utility>

#include "warpline/rpc/call_queue.h"

namespace warpline::rpc {

Result<std::unique_ptr<CompletionQueue>> CompletionQueue::make(std::uint32_t calls) {
  WARPLINE_CHECK(check_calls("CompletionQueue", calls));
  WARPLINE_TRY(auto wake, transport::WakeUp::make());
  return std::unique_ptr<CompletionQueue>(new CompletionQueue(calls, std::move(wake)));
}

CompletionQueue::~CompletionQueue() {
  for (Completion ended; free_.load(std::memory_order_acquire) != calls_;) {
    if (poll({&ended, 1}) == 0) wait();
  }
  while (told_.load(std::memory_order_acquire) != taken_) std::this_thread::yield();  // a host that is about to wake it
}

/// Takes one of the free places, if there is any.
bool CompletionQueue::reserve() {
  std::uint32_t free = free_.load(std::memory_order_relaxed);
  do {
    if (free == 0) return false;
  } while (!free_.compare_exchange_weak(free, free - 1, std::memory_order_acquire, std::memory_order_relaxed));
  return true;
}

void CompletionQueue::end(void* self, std::uint64_t tag, const CallResult& result) {
  auto& queue = *static_cast<CompletionQueue*>(self);
  (void)queue.ring_.push({tag, result});  // its place was kept by submit()
  queue.wake_->wake();
  queue.told_.fetch_add(1, std::memory_order_release);
}

std::size_t CompletionQueue::poll(std::span<Completion> completions) {
  if (std::exchange(armed_, false)) wake_->end_sleep();
  std::size_t count = 0;
  while (count < completions.size() && ring_.pop(completions[count])) ++count;
  taken_ += count;
  if (count != 0) free_.fetch_add(static_cast<std::uint32_t>(count), std::memory_order_release);
  return count;
}

bool CompletionQueue::arm() {
  if (!armed_) armed_ = wake_->begin_sleep();
  return armed_;
}

void CompletionQueue::wait() {
  if (!arm()) return;
  pollfd watched{descriptor(), POLLIN, 0};
  (void)::poll(&watched, 1, -1);
}

}  // namespace warpline::rpc
