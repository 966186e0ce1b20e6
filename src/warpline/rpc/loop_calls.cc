// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/loop_calls.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "warpline/base/units.h"
#include "warpline/message/endpoint.h"
#include "warpline/rpc/call_queue.h"

namespace warpline::rpc {

LoopCalls::LoopCalls(std::unique_ptr<transport::WakeUp> wake, MessageHost& host, message::SessionId session,
                     std::uint32_t calls)
    : wake_(std::move(wake)), host_(host), session_(session), calls_(calls), ended_(calls) {}

Result<std::unique_ptr<LoopCalls>> LoopCalls::make(MessageHost& host, const SocketAddress& server,
                                                   std::uint32_t calls) {
  WARPLINE_CHECK(check_calls("LoopCalls", calls));
  WARPLINE_TRY(auto wake, transport::WakeUp::make());
  WARPLINE_TRY(const message::SessionId session, host.connect(server));
  std::unique_ptr<LoopCalls> made(new LoopCalls(std::move(wake), host, session, calls));
  host.join(*made);
  return made;
}

std::uint32_t LoopCalls::take() {
  ++under_way_;
  if (free_.empty()) {
    Place& place = places_.emplace_back();
    place.owner = this;
    place.index = static_cast<std::uint32_t>(places_.size() - 1);
    return place.index;
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  places_[index].submitted = places_[index].stopped = false;
  return index;
}

std::uint32_t LoopCalls::add(const Call& call) {
  const std::uint32_t index = take();
  Place& place = places_[index];
  place.call = call;
  place.call.session = session_;
  place.call.metadata = {};
  place.call.response_in_endpoint = call.response.data == nullptr;
  place.rows = nullptr;
  place.made = host_.now();
  if (call.message.length <= message::kInlineBytes && !call.message.device) {
    if (call.message.length != 0) std::memcpy(place.copy.data(), call.message.data, call.message.length);
    place.call.message.data = place.copy.data();
  }
  held_.push_back(index);
  return index;
}

std::uint32_t LoopCalls::add(CallRows& rows) {
  const std::uint32_t index = take();
  places_[index].rows = &rows;
  held_.push_back(index);
  return index;
}

/// Has the host's thread open the session again.
void LoopCalls::reopen() {
  const auto open = [](void* self) {
    auto& calls = *static_cast<LoopCalls*>(self);
    (void)calls.host_.endpoint().reconnect(calls.session_, calls.host_.now());
  };
  if (!host_.post(open, this)) lost_.store(true, std::memory_order_relaxed);  // with the next flush
}

/// Gives a call to the host, or ends it if it makes no sense.
bool LoopCalls::submit(Place& place) {
  if (place.rows != nullptr) {
    const auto begin_rows = [](void* context) {
      auto& begun = *static_cast<Place*>(context);
      begun.owner->begin(begun);
    };
    return host_.post(begin_rows, &place);
  }
  Call call = place.call;
  if (const Nanos deadline = time_sum(place.made, call.patience); deadline != message::kNever)
    call.patience = std::max(Nanos{0}, time_sum(deadline, {-host_.now().value}));
  const SubmittedCall submitted = host_.submit(call, {call_ended, &place, 0});
  if (submitted.status == message::CallStatus::no_memory) return false;
  if (submitted.status != message::CallStatus::ok) {
    end_here(place, message::MessageStatus::too_long);
  } else {
    place.id = submitted.id;
  }
  return true;
}

void LoopCalls::end_here(Place& place, message::MessageStatus status) {
  place.result = {.status = status};
  place.stopped = true;
  ended_here_.push_back(place.index);
  wake_->wake();  // there is no other thread to tell of it
}

void LoopCalls::flush() {
  if (held_.empty()) return;
  if (lost_.exchange(false, std::memory_order_relaxed)) reopen();
  while (!held_.empty() && submitted_ < calls_) {
    Place& place = places_[held_.front()];
    if (!place.stopped) {
      if (left_.load(std::memory_order_relaxed)) {
        end_here(place, message::MessageStatus::peer_lost);
      } else if (!submit(place)) {
        return;
      }
      if (!place.stopped) {
        place.submitted = true;
        ++submitted_;
      }
    }
    held_.pop_front();
  }
}

void LoopCalls::cancel(std::uint32_t index) {
  Place& place = places_[index];
  if (!place.submitted) {
    if (!place.stopped) end_here(place, message::MessageStatus::cancelled);
  } else if (place.rows != nullptr) {
    place.rows->stop();
    host_.wake_up().wake();
  } else {
    (void)host_.cancel(place.id);
  }
}

std::size_t LoopCalls::poll(std::span<LoopCallEnd> ends) {
  if (std::exchange(armed_, false)) wake_->end_sleep();
  std::size_t count = 0;
  for (Place* place = nullptr; count < ends.size() && ended_.pop(place); ++count) {
    ends[count] = {place->index, place->result};
    --submitted_;
  }
  for (; count < ends.size() && !ended_here_.empty(); ++count) {
    const std::uint32_t index = ended_here_.back();
    ended_here_.pop_back();
    std::erase(held_, index);
    ends[count] = {index, places_[index].result};
  }
  under_way_ -= count;
  return count;
}

void LoopCalls::release(std::uint32_t index) {
  places_[index].memory.reset();
  places_[index].rows = nullptr;
  free_.push_back(index);
}

bool LoopCalls::arm() {
  if (!armed_) armed_ = ended_here_.empty() && wake_->begin_sleep();
  return armed_;
}

void LoopCalls::call_ended(void* context, std::uint64_t /*tag*/, const CallResult& result) {
  auto& place = *static_cast<Place*>(context);
  CallResult kept = result;
  kept.metadata = {};
  if (place.call.response_in_endpoint && result.status == message::MessageStatus::ok && result.length != 0) {
    std::uint8_t* to = place.copy.data();
    if (result.length > place.copy.size()) {
      place.memory.reset(new (std::nothrow) std::uint8_t[result.length]);
      to = place.memory.get();
    }
    if (to != nullptr) {
      std::memcpy(to, result.data, result.length);
    } else {
      kept.status = message::MessageStatus::too_long;
    }
    kept.data = to;
  }
  place.owner->end(place, kept);
}

void LoopCalls::end(Place& place, const CallResult& result) {
  place.result = result;
  if (place.rows != nullptr) {
    for (CallRows** at = &rows_; *at != nullptr; at = &(*at)->next) {
      if (*at != place.rows) continue;
      *at = place.rows->next;
      break;
    }
  }
  (void)ended_.push(&place);  // it has room for all that were submitted
  told_ = true;
  if (left_.load(std::memory_order_relaxed)) wake_->wake();  // there is no next turn
}

void LoopCalls::begin(Place& place) {
  const auto over = [](void* context) {
    auto& ended = *static_cast<Place*>(context);
    ended.owner->end(ended, ended.rows->failure());
  };
  place.rows->next = rows_;
  rows_ = place.rows;
  place.rows->begin(host_, session_, over, &place);
}

bool LoopCalls::handle(message::Endpoint& /*endpoint*/, const message::MessageEvent& event, Nanos /*now*/) {
  if (event.session != session_) return false;
  if (event.kind == message::EventKind::connected) return true;
  if (event.kind != message::EventKind::lost) return false;
  loss_.store(event.reason, std::memory_order_relaxed);
  lost_.store(true, std::memory_order_relaxed);
  return true;
}

bool LoopCalls::advance(message::Endpoint& /*endpoint*/, bool /*moved*/, Nanos /*now*/) {
  for (CallRows* rows = rows_; rows != nullptr;) {
    CallRows* const next = rows->next;  // it may end, and belong to another thread then
    rows->advance();
    rows = next;
  }
  if (std::exchange(told_, false)) wake_->wake();
  return false;
}

void LoopCalls::leave(message::Endpoint& endpoint, Nanos now) {
  left_.store(true, std::memory_order_relaxed);
  (void)endpoint.close(session_, now);
}

}  // namespace warpline::rpc
