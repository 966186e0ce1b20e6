// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "warpline/base/mpsc_ring.h"
#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/message/types.h"
#include "warpline/rpc/call.h"
#include "warpline/transport/wake_up.h"

namespace warpline::rpc {

/// Calls, or requests, that one object has at the same time at most: queues have several entries for each.
inline constexpr std::uint32_t kMaxCalls = 1U << 24;
/// Returns a usage error unless `count` is 1 to kMaxCalls. `what`: the setting that it comes from.
[[nodiscard]] Result<void> check_calls(std::string_view what, std::uint32_t count);

/// Calls on their way from any threads to the one that owns an endpoint, and the places where that thread keeps them
/// until they have ended. Nobody locks, waits or allocates.
class CallQueue {
 public:
  /// What the owner has to do.
  enum class Order : std::uint8_t {
    nothing,  ///< there is none
    submit,   ///< the call at this place has come
    cancel,   ///< it is to be cancelled
    run,      ///< the task at this place has come
  };

  static constexpr std::uint32_t kNobody = 0xffffffff;
  /// A call or a task, and what its owner notes of it.
  struct Place {
    Call call;  ///< `message` is in `copy`, if it is short
    CallDone done;
    Nanos submitted;  ///< the time that submit() was given
    Nanos deadline;   ///< by the same clock
    void (*task)(void* context) = nullptr;
    void* task_context = nullptr;
    std::array<std::uint8_t, message::kInlineBytes> copy;

    message::MessageId message;             ///< the owner's: as the endpoint calls it, once `given`
    bool given = false;                     ///< the owner's
    std::uint32_t next_waiting = kNobody;   ///< the owner's: behind it, for memory of the endpoint
    std::atomic<std::uint32_t> next_free;   ///< of the places that are free
    std::atomic<std::uint32_t> generation;  ///< twice the call's; odd: it is being cancelled
  };

  /// Has places for `calls`, at least one. `wake`, which outlives it, wakes the owner.
  CallQueue(std::uint32_t calls, transport::WakeUp& wake);

  // By any thread.
  /// `now` is of one clock for all threads.
  SubmittedCall submit(const Call& call, const CallDone& done, Nanos now);
  /// False if the call has ended, or is being cancelled already.
  bool cancel(CallId id);
  /// Has the owner run this. False: all places are taken.
  bool post(void (*task)(void* context), void* context);

  // By the owner.
  /// The next order and the place that it is about.
  Order next(std::uint32_t& index);
  [[nodiscard]] Place& at(std::uint32_t index) { return places_[index]; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(places_.size()); }
  /// From now on no calls and tasks are taken: no_memory.
  void close() { closed_.store(true, std::memory_order_relaxed); }
  /// Makes the place free again; its call's id means nothing any more.
  void free(std::uint32_t index);

 private:
  struct Entry {
    std::uint32_t index = 0;
    std::uint32_t generation = 0;
    Order order = Order::nothing;
  };

  std::uint32_t take();
  bool push(const Entry& entry);

  transport::WakeUp& wake_;
  std::vector<Place> places_;
  /// A stack of free places, by R. Treiber: the first one's index, and above it a number that each change adds one to.
  alignas(64) std::atomic<std::uint64_t> free_;
  MpscRing<Entry> ring_;
  std::atomic<bool> closed_{false};
};

}  // namespace warpline::rpc
