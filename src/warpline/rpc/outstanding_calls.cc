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
  const bool due = !long_lines_.empty() && (moved || waiting_until_ <= now);
  if (due) look_at_lines(endpoint, now);
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
    if (line_of(index).first != kNobody || !give(endpoint, index, now)) join_line(index);
  }
}

/// Ends the call if it makes no sense. False: there is no room now.
bool OutstandingCalls::give(message::Endpoint& endpoint, std::uint32_t index, Nanos now) {
  CallQueue::Place& place = queue_.at(index);
  const message::Submitted submitted = endpoint.request(
      place.call.session, place.call.message, place.call.response,
      {.context = index, .code = place.call.code, .deadline = place.deadline, .metadata = place.call.metadata}, now);
  if (submitted.status == message::CallStatus::no_slot || submitted.status == message::CallStatus::no_memory)
    return false;
  if (submitted.status == message::CallStatus::ok) {
    place.message = submitted.id;
    place.given = true;
  } else {
    end(index, {.status = message::MessageStatus::peer_lost}, now);
  }
  return true;
}

void OutstandingCalls::join_line(std::uint32_t index) {
  CallQueue::Place& place = queue_.at(index);
  Line& line = line_of(index);
  place.next_waiting = kNobody;
  if (line.first == kNobody) {
    line.first = index;
    if (!line.listed) long_lines_.push_back(static_cast<std::uint32_t>(&line - lines_.data()));
    line.listed = true;
  } else {
    queue_.at(line.last).next_waiting = index;
  }
  line.last = index;
  waiting_until_ = std::min(waiting_until_, place.deadline);
}

void OutstandingCalls::cancel(message::Endpoint& endpoint, std::uint32_t index, Nanos now) {
  CallQueue::Place& place = queue_.at(index);
  if (place.given) {
    (void)endpoint.cancel(place.message, now);  // its event says how it ended
    return;
  }
  // It waits: what is past its deadline leaves its line.
  place.deadline = now;
  expire(line_of(index), now);
}

/// Ends those in a line whose deadline has come. A line that becomes empty stays among the long ones for now.
void OutstandingCalls::expire(Line& line, Nanos now) {
  std::uint32_t before = kNobody;
  for (std::uint32_t index = line.first; index != kNobody;) {
    const CallQueue::Place& place = queue_.at(index);
    const std::uint32_t next = place.next_waiting;
    if (place.deadline > now) {
      before = index;
    } else {
      (before == kNobody ? line.first : queue_.at(before).next_waiting) = next;
      if (next == kNobody) line.last = before;
      const bool cancelled = (place.generation.load(std::memory_order_relaxed) & 1) != 0;
      end(index, {.status = cancelled ? message::MessageStatus::cancelled : message::MessageStatus::deadline}, now);
    }
    index = next;
  }
}

/// Gives the endpoint what it takes now, and ends what waited too long.
void OutstandingCalls::look_at_lines(message::Endpoint& endpoint, Nanos now) {
  if (waiting_until_ <= now) {
    for (const std::uint32_t number : long_lines_) expire(lines_[number], now);
  }
  waiting_until_ = message::kNever;
  std::erase_if(long_lines_, [&](std::uint32_t number) {
    Line& line = lines_[number];
    while (line.first != kNobody) {
      const std::uint32_t index = line.first;
      const std::uint32_t next = queue_.at(index).next_waiting;
      if (!give(endpoint, index, now)) break;
      line.first = next;
    }
    for (std::uint32_t index = line.first; index != kNobody; index = queue_.at(index).next_waiting)
      waiting_until_ = std::min(waiting_until_, queue_.at(index).deadline);
    line.listed = line.first != kNobody;
    return !line.listed;
  });
}

bool OutstandingCalls::handle(const message::MessageEvent& event, Nanos now) {
  if (event.kind != message::EventKind::response || event.context >= queue_.size()) return false;
  const auto index = static_cast<std::uint32_t>(event.context);
  const CallQueue::Place& place = queue_.at(index);
  if (!place.given || place.message != event.id) return false;
  end(index, {event.status, event.reach, event.code, event.data, event.length}, now);
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
    for (const message::MessageEvent& event : std::span(events).first(count)) (void)handle(event, now);
  }
  for (const std::uint32_t number : long_lines_) {
    for (index = lines_[number].first; index != kNobody; index = queue_.at(index).next_waiting) {
      queue_.at(index).deadline = now;
      queue_.at(index).generation.fetch_or(1, std::memory_order_relaxed);
    }
    expire(lines_[number], now);
  }
  for (index = 0; index < queue_.size(); ++index) {  // what the transport still reads has no event yet
    if (queue_.at(index).given)
      end(index, {.status = message::MessageStatus::cancelled, .reach = message::Reach::maybe_handled}, now);
  }
}

}  // namespace warpline::rpc
