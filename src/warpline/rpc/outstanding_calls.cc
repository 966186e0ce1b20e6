// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/outstanding_calls.h"

#include <algorithm>
#include <array>
#include <span>

namespace warpline::rpc {
namespace {

constexpr std::size_t kOrdersATurn = 256;  ///< then it is the network's turn
constexpr std::uint32_t kNobody = CallQueue::kNobody;

}  // namespace

bool OutstandingCalls::advance(message::Endpoint& endpoint, bool moved, Nanos now) {
  std::size_t done = 0;
  std::uint32_t index = 0;
  for (; done < kOrdersATurn; ++done) {
    const CallQueue::Order order = queue_.next(index);
    if (order == CallQueue::Order::nothing) break;
    take(endpoint, order, index, now);
  }
  const bool due = first_waiting_ != kNobody && (moved || waiting_until_ <= now);
  if (due) give_waiting(endpoint, now);
  return done != 0 || due;
}

void OutstandingCalls::take(message::Endpoint& endpoint, CallQueue::Order order, std::uint32_t index, Nanos now) {
  CallQueue::Place& place = queue_.at(index);
  if (order == CallQueue::Order::run) {
    const auto task = place.task;
    void* const context = place.task_context;
    queue_.free(index);
    task(context);
  } else if (order == CallQueue::Order::cancel) {
    cancel(endpoint, index, now);
  } else {
    place.given = false;
    if (observer_ != nullptr) observer_->call_began(place.call);
    // Who came before goes before.
    if (first_waiting_ != kNobody || !give(endpoint, index, now)) wait(index);
  }
}

/// Ends the call if it makes no sense. False: there is no room now.
bool OutstandingCalls::give(message::Endpoint& endpoint, std::uint32_t index, Nanos now) {
  CallQueue::Place& place = queue_.at(index);
  const message::Submitted submitted = endpoint.request(place.call.session, place.call.message, place.call.response,
                                                        {.context = index,
                                                         .code = place.call.code,
                                                         .priority = place.call.priority,
                                                         .deadline = place.deadline,
                                                         .response_in_endpoint = place.call.response_in_endpoint,
                                                         .metadata = place.call.metadata},
                                                        now);
  if (submitted.status == message::CallStatus::no_slot || submitted.status == message::CallStatus::no_memory)
    return false;
  if (submitted.status == message::CallStatus::ok) {
    place.message = submitted.id;
    place.given = true;
  } else if (submitted.status == message::CallStatus::going_away) {
    end(index,
        {.status = message::MessageStatus::refused,
         .code = static_cast<std::uint16_t>(message::RefusalCode::going_away)},
        now);
  } else {
    end(index, {.status = message::MessageStatus::peer_lost}, now);
  }
  return true;
}

void OutstandingCalls::wait(std::uint32_t index) {
  CallQueue::Place& place = queue_.at(index);
  place.next_waiting = kNobody;
  (first_waiting_ == kNobody ? first_waiting_ : queue_.at(last_waiting_).next_waiting) = index;
  last_waiting_ = index;
  waiting_until_ = std::min(waiting_until_, place.deadline);
}

void OutstandingCalls::cancel(message::Endpoint& endpoint, std::uint32_t index, Nanos now) {
  CallQueue::Place& place = queue_.at(index);
  if (place.given) {
    (void)endpoint.cancel(place.message, now);  // its event says how it ended
    return;
  }
  // It waits, as long as its deadline has not come.
  place.deadline = now;
  expire(now);
}

/// Ends those that wait and whose deadline has come.
void OutstandingCalls::expire(Nanos now) {
  std::uint32_t before = kNobody;
  for (std::uint32_t index = first_waiting_; index != kNobody;) {
    const CallQueue::Place& place = queue_.at(index);
    const std::uint32_t next = place.next_waiting;
    if (place.deadline > now) {
      before = index;
    } else {
      (before == kNobody ? first_waiting_ : queue_.at(before).next_waiting) = next;
      if (next == kNobody) last_waiting_ = before;
      const bool cancelled = (place.generation.load(std::memory_order_relaxed) & 1) != 0;
      end(index, {.status = cancelled ? message::MessageStatus::cancelled : message::MessageStatus::deadline}, now);
    }
    index = next;
  }
}

/// Gives the endpoint what it takes now, and ends what waited too long.
void OutstandingCalls::give_waiting(message::Endpoint& endpoint, Nanos now) {
  if (waiting_until_ <= now) expire(now);
  while (first_waiting_ != kNobody) {
    const std::uint32_t index = first_waiting_;
    const std::uint32_t next = queue_.at(index).next_waiting;
    if (!give(endpoint, index, now)) break;
    first_waiting_ = next;
  }
  waiting_until_ = message::kNever;
  for (std::uint32_t index = first_waiting_; index != kNobody; index = queue_.at(index).next_waiting)
    waiting_until_ = std::min(waiting_until_, queue_.at(index).deadline);
}

bool OutstandingCalls::handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) {
  if (event.kind != message::EventKind::response || event.context >= queue_.size()) return false;
  const auto index = static_cast<std::uint32_t>(event.context);
  const CallQueue::Place& place = queue_.at(index);
  if (!place.given || place.message != event.id) return false;
  const bool lent = place.call.response_in_endpoint && event.status == message::MessageStatus::ok;
  end(index, {event.status, event.reach, event.code, event.data, event.length, event.metadata()}, now);
  if (lent) (void)endpoint.release(event.id, now);
  return true;
}

void OutstandingCalls::end(std::uint32_t index, const CallResult& result, Nanos now) {
  if (observer_ != nullptr) {
    const CallQueue::Place& place = queue_.at(index);
    observer_->call_ended(place.call, result, {std::max<std::int64_t>(now.value - place.submitted.value, 0)});
  }
  const CallDone done = queue_.at(index).done;
  queue_.at(index).given = false;
  queue_.free(index);
  if (done.done != nullptr) done.done(done.context, done.tag, result);
}

void OutstandingCalls::end_all(message::Endpoint& endpoint, Nanos now) {
  queue_.close();
  std::uint32_t index = 0;
  for (CallQueue::Order order{}; (order = queue_.next(index)) != CallQueue::Order::nothing;)
    take(endpoint, order, index, now);
  for (index = 0; index < queue_.size(); ++index) {
    const CallQueue::Place& place = queue_.at(index);
    if (place.given) (void)endpoint.cancel(place.message, now);
  }
  std::array<message::MessageEvent, 32> events;
  for (std::size_t count = 1; count != 0;) {
    count = endpoint.poll(events, 0);
    for (const message::MessageEvent& event : std::span(events).first(count)) (void)handle(endpoint, event, now);
  }
  for (index = first_waiting_; index != kNobody; index = queue_.at(index).next_waiting) {
    queue_.at(index).deadline = now;
    queue_.at(index).generation.fetch_or(1, std::memory_order_relaxed);
  }
  expire(now);
  for (index = 0; index < queue_.size(); ++index) {  // what the transport still reads has no event yet
    if (queue_.at(index).given)
      end(index, {.status = message::MessageStatus::cancelled, .reach = message::Reach::maybe_handled}, now);
  }
}

}  // namespace warpline::rpc
