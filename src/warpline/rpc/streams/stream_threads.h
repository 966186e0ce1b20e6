// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/rpc/streams/call_stream.h"

namespace warpline::transport {
class WakeUp;
}  // namespace warpline::transport

namespace warpline::rpc {

/// Handles calls in pieces on threads of its own, each one call at a time, from its first piece to its answer, so that
/// a handler may sleep for the next piece, or for room. Calls that find no thread wait for one, their pieces within
/// their windows. Belongs to the endpoint's thread.
class CallStreamThreads {
 public:
  /// Called by any of the threads, `thread` of them. A call that it leaves without finish() is declined. Throws
  /// nothing.
  using Handler = std::function<void(CallStream& stream, unsigned thread)>;

  /// Starts the threads, one at least. `wake` wakes the endpoint's thread, and outlives this. Environment error: the
  /// system gives no more threads.
  [[nodiscard]] static Result<std::unique_ptr<CallStreamThreads>> start(unsigned threads, Handler handler,
                                                                        transport::WakeUp& wake);
  /// Waits for the handlers that run: their calls have ended before, see CallStreams::end_all(). Declines the others.
  ~CallStreamThreads();
  CallStreamThreads(const CallStreamThreads&) = delete;
  CallStreamThreads& operator=(const CallStreamThreads&) = delete;

  /// A call that was taken goes to a thread, now or later.
  void take(CallStream stream);
  /// Gives those that wait to threads that are done. Cheap if there are none. To be called once a turn.
  void advance();
  /// Declines the calls that wait. Handlers that run go on, and no other is called any more. Does not wait.
  void stop();
  /// After stop(): whether the last handler has returned, which the endpoint's thread is woken for.
  [[nodiscard]] bool ended() const { return running_.load(std::memory_order_acquire) == 0; }

 private:
  enum State : std::uint32_t { idle, busy, stopped };
  struct alignas(64) Lane {
    std::atomic<std::uint32_t> state{idle};
    CallStream stream;  ///< the thread's while it is busy
    std::thread thread;
  };

  CallStreamThreads(Handler handler, transport::WakeUp& wake) : handler_(std::move(handler)), wake_(wake) {}
  void work(Lane& lane, unsigned number);

  Handler handler_;
  transport::WakeUp& wake_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::deque<CallStream> waiting_;
  std::atomic<bool> stop_{false};
  std::atomic<unsigned> running_{0};  ///< threads that may call the handler
};

}  // namespace warpline::rpc
