// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "warpline/base/mpsc_ring.h"
#include "warpline/base/result.h"
#include "warpline/rpc/call.h"
#include "warpline/transport/wake_up.h"

namespace warpline::rpc {

/// The end of a call that was submitted through a CompletionQueue.
struct Completion {
  std::uint64_t tag = 0;  ///< as given with the call
  CallResult result;      ///< how it ended
};

/// Where ends of calls wait for one thread to take them: calls of any number of hosts and threads. Nobody locks or
/// allocates.
class CompletionQueue {
 public:
  /// For `calls` at once, at least one. Environment error: no descriptor left.
  [[nodiscard]] static Result<std::unique_ptr<CompletionQueue>> make(std::uint32_t calls);
  /// Waits for the ends of calls that are under way, as ~PendingCall() does. Ends that poll() has not handed out are
  /// dropped.
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  /// Submits a call whose end comes here. `no_memory`: as many calls are under way, or wait here, as may be. `asker`: a
  /// MessageHost or a ServerPool. Any thread.
  template <typename Asker>
  SubmittedCall submit(Asker& asker, const Call& call, std::uint64_t tag) {
    if (call.response_in_endpoint) return {message::CallStatus::not_allowed, {}};
    if (!reserve()) return {message::CallStatus::no_memory, {}};
    const SubmittedCall submitted = asker.submit(call, {end, this, tag});
    if (submitted.status != message::CallStatus::ok) free_.fetch_add(1, std::memory_order_relaxed);
    return submitted;
  }

  // By the one thread that takes them.
  /// Fills `completions` from the front; returns how many.
  std::size_t poll(std::span<Completion> completions);
  /// To be called before a sleep on descriptor(), after a poll() that found nothing: it is readable then from the next
  /// end on, until poll(). False: there may be something, poll again.
  [[nodiscard]] bool arm();
  /// For poll(2) or epoll, after arm(). The object's; nobody else reads or writes it.
  [[nodiscard]] int descriptor() const { return wake_->descriptor(); }
  /// Sleeps until there is something for poll(). Not by the thread of a host that the calls were submitted to.
  void wait();

 private:
  CompletionQueue(std::uint32_t calls, std::unique_ptr<transport::WakeUp> wake)
      : calls_(calls), wake_(std::move(wake)), ring_(calls), free_(calls) {}
  bool reserve();
  static void end(void* self, std::uint64_t tag, const CallResult& result);

  const std::uint32_t calls_;
  std::unique_ptr<transport::WakeUp> wake_;
  MpscRing<Completion> ring_;
  std::atomic<std::uint32_t> free_;     ///< places in the ring that no call has
  std::atomic<std::uint64_t> told_{0};  ///< ends that hosts are done with
  std::uint64_t taken_ = 0;             ///< ends that poll() has handed out
  bool armed_ = false;
};

}  // namespace warpline::rpc
