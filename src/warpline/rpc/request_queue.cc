// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/request_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "warpline/message/endpoint.h"
#include "warpline/rpc/call_queue.h"

namespace warpline::rpc {
namespace {

/// What waits of one place at most: that the request before was withdrawn, the end of its answer, a request, and that
/// this one was withdrawn.
constexpr std::uint32_t kNewsAPlace = 4;

}  // namespace

RequestQueue::RequestQueue(std::unique_ptr<transport::WakeUp> wake, transport::WakeUp& host, std::uint32_t requests,
                           CallObserver* observer)
    : wake_(std::move(wake)),
      host_(host),
      observer_(observer),
      places_(requests),
      news_(kNewsAPlace * requests),
      answers_(requests) {
  for (std::uint32_t i = 0; i < requests; ++i) free_.push_back(requests - 1 - i);
  waiting_.reserve(requests);
}

Result<std::unique_ptr<RequestQueue>> RequestQueue::make(MessageHost& host, std::uint32_t requests,
                                                         CallObserver* observer) {
  WARPLINE_CHECK(check_calls("RequestQueue", requests));
  WARPLINE_TRY(auto wake, transport::WakeUp::make());
  std::unique_ptr<RequestQueue> made(new RequestQueue(std::move(wake), host.wake_up(), requests, observer));
  host.join(*made);
  return made;
}

std::size_t RequestQueue::poll(std::span<QueuedRequest> requests) {
  if (std::exchange(armed_, false)) wake_->end_sleep();
  std::size_t count = 0;
  while (count < requests.size() && news_.pop(requests[count])) {
    const QueuedRequest& news = requests[count];
    Place& place = places_[news.place];
    if (news.kind == QueuedRequest::Kind::request) place.open = true;
    // It was answered while the peer withdrew it: nobody asks any more.
    if (news.kind == QueuedRequest::Kind::withdrawn && !place.open) continue;
    ++count;
  }
  return count;
}

void RequestQueue::answer(std::uint32_t index, message::ConstBuffer answer, std::uint16_t code) {
  Place& place = places_[index];
  place.answer = answer;
  place.answer_code = code;
  place.declined = false;
  place.open = false;
  if (answer.length <= message::kInlineBytes && !answer.device) {
    if (answer.length != 0) std::memcpy(place.copy.data(), answer.data, answer.length);
    place.answer.data = place.copy.data();
  }
  (void)answers_.push(index);
  unsent_ = true;
}

void RequestQueue::decline(std::uint32_t index) {
  places_[index].declined = true;
  places_[index].open = false;
  (void)answers_.push(index);
  unsent_ = true;
}

void RequestQueue::flush() {
  if (std::exchange(unsent_, false)) host_.wake();
}

bool RequestQueue::arm() {
  if (!armed_) armed_ = wake_->begin_sleep();
  return armed_;
}

std::optional<std::uint32_t> RequestQueue::find(const message::MessageId& id, State state) const {
  const auto is_it = [&](const Place& place) { return place.state == state && place.id == id; };
  const auto found = std::ranges::find_if(places_, is_it);
  if (found == places_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - places_.begin());
}

void RequestQueue::tell(const QueuedRequest& news) {
  (void)news_.push(news);
  told_ = true;
}

void RequestQueue::accept(const message::MessageEvent& event, Nanos now) {
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Place& place = places_[index];
  place.state = State::asked;
  place.id = event.id;
  place.observed = {event.session, event.code, event.length};
  place.began = now;
  if (observer_ != nullptr) observer_->request_began(place.observed);
  tell({QueuedRequest::Kind::request,
        index,
        event.session,
        event.code,
        {event.data, event.length, event.device},
        event.metadata(),
        event.deadline()});
}

bool RequestQueue::handle(message::Endpoint& /*endpoint*/, const message::MessageEvent& event, Nanos now) {
  if (event.kind == message::EventKind::request) {
    if (free_.empty()) return false;
    accept(event, now);
    return true;
  }
  if (event.kind == message::EventKind::withdrawn) {
    const auto found = find(event.id, State::asked);
    if (found) tell({QueuedRequest::Kind::withdrawn, *found});
    return found.has_value();
  }
  if (event.kind != message::EventKind::sent || event.context >= places_.size()) return false;
  const auto index = static_cast<std::uint32_t>(event.context);
  Place& place = places_[index];
  if (place.state != State::leaving || place.id != event.id) return false;
  place.state = State::free;
  free_.push_back(index);
  tell({QueuedRequest::Kind::sent, index});
  return true;
}

bool RequestQueue::give(message::Endpoint& endpoint, std::uint32_t index, Nanos now) {
  Place& place = places_[index];
  message::CallStatus status = message::CallStatus::not_allowed;
  if (!place.declined) {
    status = endpoint.respond(place.id, place.answer, {.context = index, .code = place.answer_code}, now);
    if (status == message::CallStatus::no_memory || status == message::CallStatus::no_slot) return false;
  }
  // Withdrawn meanwhile, it has been given back; what cannot be sent is declined.
  if (status != message::CallStatus::ok && status != message::CallStatus::unknown_message)
    (void)endpoint.release(place.id, now);
  const bool is_long = !place.declined && (place.answer.length > message::kInlineBytes || place.answer.device);
  if (observer_ != nullptr) {
    observer_->request_ended(place.observed, observed_answer(status, place.answer_code, place.answer.length,
                                                             {now.value - place.began.value}));
  }
  if (is_long && status == message::CallStatus::ok) {
    place.state = State::leaving;
    return true;
  }
  place.state = State::free;
  free_.push_back(index);
  if (is_long) tell({QueuedRequest::Kind::sent, index});
  return true;
}

bool RequestQueue::advance(message::Endpoint& endpoint, bool moved, Nanos now) {
  std::size_t done = 0;
  if (moved) done += std::erase_if(waiting_, [&](std::uint32_t index) { return give(endpoint, index, now); });
  for (std::uint32_t index = 0; answers_.pop(index); ++done) {
    if (!give(endpoint, index, now)) waiting_.push_back(index);
  }
  if (std::exchange(told_, false)) wake_->wake();
  return done != 0;
}

void RequestQueue::leave(message::Endpoint& endpoint, Nanos now) {
  free_.clear();
  for (Place& place : places_) {
    if (place.state == State::asked) (void)endpoint.release(place.id, now);
    place.state = State::free;
  }
}

}  // namespace warpline::rpc
