// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/spsc_ring.h"
#include "warpline/message/types.h"
#include "warpline/rpc/call_observer.h"

namespace warpline::message {
class Endpoint;
}  // namespace warpline::message

namespace warpline::transport {
class WakeUp;
}  // namespace warpline::transport

namespace warpline::rpc {

/// A request of a peer as its handler sees it, and the answer that the handler gives.
struct HandledRequest {
  message::SessionId session{};              ///< that the request came by
  std::uint16_t code = 0;                    ///< as the peer gave it with the request
  message::ConstBuffer data{};               ///< there until the answer has left
  std::span<const std::uint8_t> metadata{};  ///< as the peer gave it with the request; there as long as `data`
  Nanos deadline = message::kNever;          ///< when the peer gives it up, by the endpoint's clock
  const std::atomic<bool>* gone = nullptr;   ///< see withdrawn()
  std::span<std::uint8_t> room{};            ///< for the answer; the handler's until it returns

  /// Returns whether the peer has given the request up: by cancelling it, by its deadline, or by its end. The answer
  /// goes nowhere then, and a long handler may end without one.
  [[nodiscard]] bool withdrawn() const { return gone->load(std::memory_order_relaxed); }

  /// The answer: in `room`, or part of `data`, or bytes that stay. Empty unless the handler says otherwise.
  message::ConstBuffer answer{};
  std::uint16_t answer_code = 0;  ///< handed to the peer with the answer
  bool declined = false;          ///< no answer: the peer is told that its request was given back
};

/// What HandlerThreads are started with.
struct HandlerThreadsSetup {
  unsigned threads = 1;                 ///< one at least, each with requests of its own
  std::uint32_t requests = 256;         ///< most that are handled, or whose answers are on their way, at once
  std::uint32_t response_bytes = 4096;  ///< of each one's room
  /// Requests of a session go to one thread, in the order of their arrival; else to the one that has fewest.
  bool by_session = false;
  /// What the endpoint's thread sleeps by: woken when an answer is done. Outlives the threads. Null: that thread polls.
  transport::WakeUp* wake = nullptr;
  CallObserver* observer = nullptr;  ///< told of requests, on the endpoint's thread; null: nobody
};

/// Handles requests on threads of its own, so that long handlers do not hold up the endpoint, which stays with its
/// owner's thread. That makes all calls here, and calls poll() once a turn in the place of Endpoint::poll().
///
/// A wake-up of a thread that found nothing to do for a while, and of the endpoint's thread if that sleeps, are the
/// only system calls. Destroyed before the endpoint whose requests it has: it waits for handlers that run, and forgets
/// what they have not begun. If handlers may wait for the endpoint's thread, that thread calls stop() first, and does
/// what they wait for until ended().
class HandlerThreads {
 public:
  /// Called by any of the threads, `thread` of them, each with its own request at a time. Throws nothing.
  using Handler = std::function<void(HandledRequest& request, unsigned thread)>;

  /// Starts the threads. Usage error: no threads or no requests. Environment error: the system gives no more threads.
  [[nodiscard]] static Result<std::unique_ptr<HandlerThreads>> start(const HandlerThreadsSetup& setup, Handler handler);
  ~HandlerThreads();
  HandlerThreads(const HandlerThreads&) = delete;
  HandlerThreads& operator=(const HandlerThreads&) = delete;

  /// Answers what is done, hands the endpoint's requests to the threads, and fills `others` with its events that are
  /// neither requests nor the ends of answers given here; returns how many. Requests beyond room() stay with the
  /// endpoint and hold their peers back. `others` has room for one event at least. Sleep only after it returned 0.
  std::size_t poll(message::Endpoint& endpoint, std::span<message::MessageEvent> others, Nanos now);
  /// Requests that the next poll() would take.
  [[nodiscard]] std::uint32_t room() const { return static_cast<std::uint32_t>(free_.size()); }
  /// With the threads, or done and not yet answered: as long as there are any, a loop without HandlerThreadsSetup::wake
  /// sleeps no longer than an answer may wait.
  [[nodiscard]] std::uint32_t in_hand() const { return in_hand_; }
  /// Handlers that run go on, and no other is called any more. Does not wait. poll() is not called any more.
  void stop();
  /// After stop(): whether the last handler has returned, which HandlerThreadsSetup::wake is woken for.
  [[nodiscard]] bool ended() const { return running_.load(std::memory_order_acquire) == 0; }

 private:
  struct Job {
    message::MessageId id;
    HandledRequest request;
    std::atomic<bool> withdrawn{false};
    unsigned thread = 0;
    Nanos began;           ///< when it was accepted
    bool leaving = false;  ///< its response ends with an event
  };
  struct alignas(64) Lane {
    explicit Lane(std::uint32_t requests) : asked(requests), done(requests) {}
    SpscRing<std::uint32_t> asked;  ///< jobs, from the endpoint's thread
    SpscRing<std::uint32_t> done;   ///< and back; neither is ever full
    std::atomic<std::uint32_t> sleeps{0};
    std::thread thread;
    std::uint32_t in_hand = 0;  ///< the endpoint's thread's
  };

  HandlerThreads(const HandlerThreadsSetup& setup, Handler handler);
  void work(Lane& lane, unsigned number);
  static void wake(Lane& lane);
  /// Tells the handler of the request, if one has it.
  void withdraw(const message::MessageEvent& event);
  /// Needs room().
  void accept(const message::MessageEvent& request, Nanos now);
  /// False if the event is of no response that was given here.
  bool sent(const message::MessageEvent& event);
  void respond(message::Endpoint& endpoint, Nanos now);
  /// False if it has to be tried again.
  bool answer(message::Endpoint& endpoint, std::uint32_t index, Nanos now);

  HandlerThreadsSetup setup_;
  Handler handler_;
  std::vector<std::uint8_t> rooms_;
  std::vector<Job> jobs_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> waiting_;  ///< done, and the endpoint had no memory
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::uint32_t in_hand_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<unsigned> running_{0};  ///< threads that may call the handler
};

}  // namespace warpline::rpc
