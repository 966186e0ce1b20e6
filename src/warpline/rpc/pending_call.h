// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "warpline/rpc/call.h"

namespace warpline::rpc {

/// A call whose end a thread waits for, as for a future: without memory of its own, on the stack of who waits. Not by
/// the host's thread, which would wait for itself.
class PendingCall {
 public:
  PendingCall() = default;
  /// Waits for the end of a call that is under way.
  ~PendingCall() {
    if (pending_) (void)wait();
  }
  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;

  /// Submits a call, after the end of the one before. Not ok: there is nothing to wait for. `asker`: a MessageHost or a
  /// ServerPool. `not_allowed`: in a callback of that host, whose loop does not go on while it is waited for.
  template <typename Asker>
  message::CallStatus submit(Asker& asker, const Call& call) {
    if (call.response_in_endpoint || asker.in_callback()) return message::CallStatus::not_allowed;
    ended_.store(0, std::memory_order_relaxed);
    const SubmittedCall submitted = asker.submit(call, {end, this, 0});
    id_ = submitted.id;
    pending_ = submitted.status == message::CallStatus::ok;
    return submitted.status;
  }
  [[nodiscard]] bool done() const { return ended_.load(std::memory_order_acquire) != 0; }  ///< any thread
  /// Sleeps until it has ended. The result is there until the next submit().
  const CallResult& wait();
  [[nodiscard]] CallId id() const { return id_; }  ///< for the asker's cancel()

 private:
  static void end(void* self, std::uint64_t tag, const CallResult& result);

  CallId id_;
  CallResult result_;
  bool pending_ = false;
  std::atomic<std::uint32_t> ended_{0};
};

}  // namespace warpline::rpc
