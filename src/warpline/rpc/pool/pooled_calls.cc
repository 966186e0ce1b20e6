// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/pool/pooled_calls.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "warpline/base/units.h"

namespace warpline::rpc {
namespace {

constexpr std::size_t kOrdersPerTurn = 256;  ///< then it is the network's turn
constexpr double kHedgeQuantile = 0.95;
constexpr std::uint32_t kEnd = IndexList::kEnd;

using message::MessageStatus;
using message::Reach;

bool refused_as(const message::MessageEvent& event, message::RefusalCode code) {
  return event.status == MessageStatus::refused && event.code == static_cast<std::uint16_t>(code);
}

/// No application has seen it or will, and another server may take it at once: gRPC's transparent retries (gRFC A6).
bool may_move(const message::MessageEvent& event) {
  const bool gone = event.status == MessageStatus::peer_lost || refused_as(event, message::RefusalCode::going_away);
  return event.reach <= Reach::not_handled && gone;
}

/// Another server, later, may do better.
bool may_help(const message::MessageEvent& event) {
  return event.status == MessageStatus::peer_lost || refused_as(event, message::RefusalCode::declined) ||
         refused_as(event, message::RefusalCode::stalled);
}

}  // namespace

PooledCalls::PooledCalls(CallQueue& queue, std::span<const SocketAddress> servers, const ServerPoolSettings& settings,
                         std::uint64_t seed, Nanos now)
    : queue_(queue),
      settings_(settings),
      servers_(servers, settings, seed),
      budget_(settings.budget, now),
      latency_(kHedgeQuantile),
      random_(mix64(seed)),
      calls_(queue.size()),
      links_(queue.size()),
      waiting_(links_),
      resting_(links_),
      hedging_(links_) {}

bool PooledCalls::advance(message::Endpoint& endpoint, bool moved, Nanos now) {
  room_ = servers_.advance(endpoint, now) || moved || room_;
  if (moved) servers_.look_again();
  std::size_t done = 0;
  std::uint32_t index = 0;
  for (; done < kOrdersPerTurn; ++done) {
    const CallQueue::Order order = queue_.next(index);
    if (order == CallQueue::Order::nothing) break;
    take(endpoint, order, index, now);
  }
  wake_resting(endpoint, now);
  if (!waiting_.empty()) {
    if (waiting_until_ <= now || given_up(now)) expire(endpoint, now);
    if (std::exchange(room_, false)) give_waiting(endpoint, now);
  }
  hedge(endpoint, now);
  return done != 0;
}

void PooledCalls::take(message::Endpoint& endpoint, CallQueue::Order order, std::uint32_t index, Nanos now) {
  if (order == CallQueue::Order::cancel) {
    cancel(endpoint, index, now);
  } else if (order == CallQueue::Order::submit) {
    start(index);
    if (waiting_.empty()) {
      place(endpoint, index, now);
    } else {  // who came before goes before
      wait(index);
    }
  }
}

/// Gives the call to a server, or lets it wait for one.
void PooledCalls::place(message::Endpoint& endpoint, std::uint32_t index, Nanos now) {
  const Begun begun = begin(endpoint, index, kFirst, now);
  if (begun == Begun::yes) return;
  if (begun == Begun::impossible || given_up(now)) {
    end_now(endpoint, index, MessageStatus::peer_lost, now);
  } else {
    wait(index);
  }
}

void PooledCalls::start(std::uint32_t index) {
  calls_[index] = {.active = true};
  counters_.calls.add(1);
  budget_.add_call();
  if (observer_ != nullptr) observer_->call_began(queue_.at(index).call);
}

void PooledCalls::wait(std::uint32_t index) {
  waiting_.push_back(index);
  waiting_until_ = std::min(waiting_until_, queue_.at(index).deadline);
}

/// Begins an attempt at a server that has room; not at the call's last one if there is another, and a hedge in no case.
PooledCalls::Begun PooledCalls::begin(message::Endpoint& endpoint, std::uint32_t index, std::size_t which, Nanos now) {
  const std::size_t except = calls_[index].last_server;
  while (true) {  // until one takes it: each one that does not is no choice any more
    std::optional<PoolServers::Place> chosen = servers_.choose(except);
    if (!chosen && which == kFirst && except != PoolServers::kNobody) chosen = servers_.choose();
    if (!chosen) return Begun::no_room;
    if (which == kHedge && !budget_.take(now)) {
      counters_.over_budget.add(1);
      return Begun::no_room;
    }
    const message::CallStatus status = submit(endpoint, index, which, *chosen, now);
    switch (status) {
      case message::CallStatus::ok:
        return Begun::yes;
      case message::CallStatus::no_memory:
        return Begun::no_room;
      case message::CallStatus::no_slot:
      case message::CallStatus::unknown_session:
      case message::CallStatus::going_away:
        servers_.refuse(endpoint, *chosen, status, now);
        break;
      default:
        return Begun::impossible;
    }
  }
}

/// Submits one request of the call.
message::CallStatus PooledCalls::submit(message::Endpoint& endpoint, std::uint32_t index, std::size_t which,
                                        const PoolServers::Place& place, Nanos now) {
  const CallQueue::Place& queued = queue_.at(index);
  Pooled& call = calls_[index];
  // Two may write at the same time: the second into memory of the endpoint.
  const bool apart = which == kHedge && queued.call.response.data != nullptr;
  const message::Submitted submitted = endpoint.request(
      servers_.session(place), queued.call.message, which == kHedge ? message::MutableBuffer{} : queued.call.response,
      {.context = std::uint64_t{index} * call.attempts.size() + which,
       .code = queued.call.code,
       .priority = queued.call.priority,
       .deadline = queued.deadline,
       .response_in_endpoint = apart,
       .metadata = queued.call.metadata},
      now);
  if (submitted.status != message::CallStatus::ok) return submitted.status;
  servers_.begin(place);
  call.attempts[which] = {.id = submitted.id, .place = place, .live = true};
  if (which == kHedge) return submitted.status;
  call.last_server = place.server;
  call.began = now;
  const bool hedged = settings_.hedge.on && queued.call.idempotent && !queued.call.response.device;
  if (hedged && servers_.size() > 1) hedging_.push_back(index);
  return submitted.status;
}

bool PooledCalls::handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) {
  if (event.kind != message::EventKind::response) {
    const bool known = servers_.handle(endpoint, event, now);
    room_ = room_ || known;
    return known;
  }
  const std::uint64_t index = event.context / 2;
  const std::size_t which = event.context % 2;
  if (index >= calls_.size()) return false;
  const Attempt& attempt = calls_[index].attempts[which];
  if (!attempt.live || attempt.id != event.id) return false;
  ended(endpoint, static_cast<std::uint32_t>(index), which, event, now);
  return true;
}

/// What the end of an attempt says about its server. One that had less time than most answers take says nothing.
AttemptEnd PooledCalls::judge(const Pooled& call, std::size_t which, const message::MessageEvent& event,
                              Nanos now) const {
  const Nanos usual = latency_.value();
  switch (event.status) {
    case MessageStatus::ok:
    case MessageStatus::too_long:
      return AttemptEnd::answered;
    case MessageStatus::peer_lost:
      return AttemptEnd::lost;
    case MessageStatus::refused:
      return refused_as(event, message::RefusalCode::going_away) ? AttemptEnd::leaving : AttemptEnd::other;
    case MessageStatus::deadline: {
      const bool had_time = usual == message::kNever || now.value - call.began.value >= usual.value;
      return event.reach != Reach::handled && had_time ? AttemptEnd::failed : AttemptEnd::other;
    }
    case MessageStatus::cancelled: {
      // Its hedge overtook it: a server that has stopped is found out by that, too.
      const bool overtaken = call.settled && !call.cancelled && which == kFirst && event.reach != Reach::handled;
      return overtaken && hedge_delay() >= usual ? AttemptEnd::failed : AttemptEnd::other;
    }
  }
  return AttemptEnd::other;
}

/// An attempt ended: with the call, or it goes on.
void PooledCalls::ended(message::Endpoint& endpoint, std::uint32_t index, std::size_t which,
                        const message::MessageEvent& event, Nanos now) {
  Pooled& call = calls_[index];
  call.attempts[which].live = false;
  if (which == kFirst) hedging_.remove(index);
  const AttemptEnd how = judge(call, which, event, now);
  servers_.end(endpoint, call.attempts[which].place, how, now);
  room_ = true;
  call.reach = std::max(call.reach, event.reach);
  const bool in_endpoint = which == kHedge && queue_.at(index).call.response.data != nullptr;
  const bool other_live = call.attempts[1 - which].live;
  if (call.settled) {
    if (in_endpoint && event.status == MessageStatus::ok) (void)endpoint.release(event.id, now);
  } else if (how == AttemptEnd::answered) {
    call.holds = in_endpoint && event.status == MessageStatus::ok;
    call.held = event.id;
    settle(endpoint, index, event, now);
    if (which == kFirst) latency_.record({now.value - call.began.value});
    if (which == kHedge) counters_.hedges_won.add(1);
  } else if (!other_live) {
    if (!call.cancelled && go_on(endpoint, index, event, now)) return;
    settle(endpoint, index, event, now);
  }
  if (call.settled && !other_live) finish(endpoint, index, now);
}

/// The event is the call's end, as soon as its other attempt has ended, too.
void PooledCalls::settle(message::Endpoint& endpoint, std::uint32_t index, const message::MessageEvent& event,
                         Nanos now) {
  Pooled& call = calls_[index];
  call.settled = true;
  call.result = {event.status, event.reach, event.code, event.data, event.length};
  hedging_.remove(index);
  for (const Attempt& attempt : call.attempts) {
    if (attempt.live) (void)endpoint.cancel(attempt.id, now);
  }
}

/// Whether, after an attempt that was not answered, there is to be another one. If so, it begins now or rests.
bool PooledCalls::go_on(message::Endpoint& endpoint, std::uint32_t index, const message::MessageEvent& event,
                        Nanos now) {
  Pooled& call = calls_[index];
  if (may_move(event)) {
    counters_.moved.add(1);
    place(endpoint, index, now);
    return true;
  }
  const CallQueue::Place& queued = queue_.at(index);
  const bool allowed = queued.call.idempotent || call.reach <= Reach::not_handled;
  if (!allowed || !may_help(event) || call.retries + 1 >= settings_.retry.attempts) return false;
  const Nanos due = time_sum(now, wait_after(settings_.retry.back_off, call.retries, random_));
  if (due >= queued.deadline) return false;
  if (!budget_.take(now)) {
    counters_.over_budget.add(1);
    return false;
  }
  ++call.retries;
  counters_.retries.add(1);
  call.due = due;
  resting_.push_back(index);
  resting_until_ = std::min(resting_until_, due);
  return true;
}

void PooledCalls::cancel(message::Endpoint& endpoint, std::uint32_t index, Nanos now) {
  Pooled& call = calls_[index];
  call.cancelled = true;
  hedging_.remove(index);
  bool live = false;
  for (const Attempt& attempt : call.attempts) {
    if (!attempt.live) continue;
    live = true;
    (void)endpoint.cancel(attempt.id, now);  // its event says how it ended
  }
  if (!live) end_now(endpoint, index, MessageStatus::cancelled, now);
}

/// Ends a call that has no attempt.
void PooledCalls::end_now(message::Endpoint& endpoint, std::uint32_t index, MessageStatus status, Nanos now) {
  waiting_.remove(index);
  resting_.remove(index);
  calls_[index].result = {.status = status};
  finish(endpoint, index, now);
}

/// Gives servers what they have room for, oldest first.
void PooledCalls::give_waiting(message::Endpoint& endpoint, Nanos now) {
  for (std::uint32_t index = waiting_.first(); index != kEnd; index = waiting_.first()) {
    waiting_.remove(index);
    const Begun begun = begin(endpoint, index, kFirst, now);
    if (begun == Begun::no_room) {
      waiting_.push_front(index);
      return;
    }
    if (begun == Begun::impossible) end_now(endpoint, index, MessageStatus::peer_lost, now);
  }
}

/// Ends those that wait and whose deadline has come, or all if there has been no server for too long.
void PooledCalls::expire(message::Endpoint& endpoint, Nanos now) {
  waiting_until_ = message::kNever;
  const bool hopeless = given_up(now);
  for (std::uint32_t index = waiting_.first(), next = kEnd; index != kEnd; index = next) {
    next = waiting_.after(index);
    const Nanos deadline = queue_.at(index).deadline;
    if (deadline <= now) {
      end_now(endpoint, index, MessageStatus::deadline, now);
    } else if (hopeless) {
      end_now(endpoint, index, MessageStatus::peer_lost, now);
    } else {
      waiting_until_ = std::min(waiting_until_, deadline);
    }
  }
}

/// Begins the next attempts that are due.
void PooledCalls::wake_resting(message::Endpoint& endpoint, Nanos now) {
  if (resting_until_ > now) return;
  resting_until_ = message::kNever;
  for (std::uint32_t index = resting_.first(), next = kEnd; index != kEnd; index = next) {
    next = resting_.after(index);
    if (calls_[index].due > now) {
      resting_until_ = std::min(resting_until_, calls_[index].due);
    } else {
      resting_.remove(index);
      place(endpoint, index, now);
    }
  }
}

/// Sends second copies of what has not been answered for long enough.
void PooledCalls::hedge(message::Endpoint& endpoint, Nanos now) {
  if (hedging_.empty()) return;
  const Nanos delay = hedge_delay();
  for (std::uint32_t index = hedging_.first(); index != kEnd; index = hedging_.first()) {
    if (time_sum(calls_[index].began, delay) > now) return;
    hedging_.remove(index);
    if (begin(endpoint, index, kHedge, now) == Begun::yes) counters_.hedges.add(1);
  }
}

Nanos PooledCalls::hedge_delay() const {
  return settings_.hedge.delay ? *settings_.hedge.delay : std::max(latency_.value(), settings_.hedge.least);
}

/// Whether there has been no server for so long that calls end.
bool PooledCalls::given_up(Nanos now) const {
  return servers_.nobody_since() != message::kNever && time_sum(servers_.nobody_since(), settings_.server_wait) <= now;
}

Nanos PooledCalls::next_deadline() const {
  Nanos next = std::min(servers_.next_deadline(), resting_until_);
  if (!waiting_.empty()) {
    next = std::min(next, waiting_until_);
    if (servers_.nobody_since() != message::kNever)
      next = std::min(next, time_sum(servers_.nobody_since(), settings_.server_wait));
  }
  if (!hedging_.empty()) next = std::min(next, time_sum(calls_[hedging_.first()].began, hedge_delay()));
  return next;
}

/// Tells of the end of a call that has no attempt any more.
void PooledCalls::finish(message::Endpoint& endpoint, std::uint32_t index, Nanos now) {
  const Pooled& call = calls_[index];
  CallResult result = call.result;
  result.reach = call.reach;
  if (call.holds) {
    const message::MutableBuffer response = queue_.at(index).call.response;
    if (result.length > response.length) {
      result.status = MessageStatus::too_long;
    } else if (result.length != 0) {
      std::memcpy(response.data, result.data, result.length);
    }
    result.data = response.data;
    (void)endpoint.release(call.held, now);
  }
  tell(index, result, now);
}

void PooledCalls::tell(std::uint32_t index, const CallResult& result, Nanos now) {
  const CallQueue::Place& queued = queue_.at(index);
  counters_.ended.add(1);
  if (observer_ != nullptr)
    observer_->call_ended(queued.call, result, {std::max<std::int64_t>(now.value - queued.submitted.value, 0)});
  const CallDone done = queued.done;
  calls_[index].active = false;
  queue_.free(index);
  if (done.done != nullptr) done.done(done.context, done.tag, result);
}

void PooledCalls::leave(message::Endpoint& endpoint, Nanos now) {
  queue_.close();
  std::uint32_t index = 0;
  for (CallQueue::Order order{}; (order = queue_.next(index)) != CallQueue::Order::nothing;) {
    if (order == CallQueue::Order::submit) start(index);
  }
  for (index = 0; index < calls_.size(); ++index) {
    if (calls_[index].active) cancel(endpoint, index, now);
  }
  servers_.close(endpoint, now);
}

void PooledCalls::end_rest(Nanos now) {
  for (std::uint32_t index = 0; index < calls_.size(); ++index) {
    if (!calls_[index].active) continue;
    calls_[index].attempts = {};  // their events come too late
    tell(index, {.status = MessageStatus::cancelled, .reach = Reach::maybe_handled}, now);
  }
}

}  // namespace warpline::rpc
