// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/event_queue.h"

namespace warpline::message {
namespace {

// A link in 32 bits: what it is of in the first two.
constexpr unsigned kOfShift = 30;
constexpr std::uint32_t kIndexMask = (1U << kOfShift) - 1;

std::uint32_t packed(EventLink link) { return static_cast<std::uint32_t>(link.of) << kOfShift | link.index; }

EventLink unpacked(std::uint32_t bits) { return {bits & kIndexMask, static_cast<EventLink::Of>(bits >> kOfShift)}; }

}  // namespace

std::uint32_t& EventQueue::next(EventLink link) {
  switch (link.of) {
    case EventLink::Of::opened:
      return sessions_[link.index].opened_next;
    case EventLink::Of::lost:
      return sessions_[link.index].lost_next;
    case EventLink::Of::message:
      break;
  }
  return messages_[link.index].event_next;
}

void EventQueue::add(EventLink link, std::uint32_t& behind) {
  behind = kNone;
  *end_ = packed(link);
  end_ = &behind;
}

void EventQueue::add(std::uint32_t message) {
  messages_[message].event_due = true;
  add(EventLink{message, EventLink::Of::message}, messages_[message].event_next);
}

void EventQueue::add_opened(Session& session) {
  session.opened_event = true;
  add(EventLink{sessions_.index_of(session), EventLink::Of::opened}, session.opened_next);
}

void EventQueue::add_lost(Session& session) {
  session.lost_pending = false;
  if (session.forgotten) return;
  session.lost_event = true;
  add(EventLink{sessions_.index_of(session), EventLink::Of::lost}, session.lost_next);
}

bool EventQueue::is_request(EventLink link) const {
  if (link.of != EventLink::Of::message) return false;
  const Message& message = messages_[link.index];
  return message.role == TransferRole::peer_request && message.state == MessageState::delivered;
}

void EventQueue::set_aside(std::uint32_t request) {
  messages_[request].event_next = kNone;
  (set_aside_.last == kNone ? set_aside_.first : messages_[set_aside_.last].event_next) = request;
  set_aside_.last = request;
}

EventLink EventQueue::take(bool requests) {
  if (set_aside_.first != kNone && requests) {
    const EventLink link{set_aside_.first, EventLink::Of::message};
    set_aside_.first = messages_[link.index].event_next;
    if (set_aside_.first == kNone) set_aside_.last = kNone;
    return link;
  }
  while (first_ != kNone) {
    const EventLink link = unpacked(first_);
    first_ = next(link);
    if (first_ == kNone) end_ = &first_;
    if (requests || !is_request(link)) return link;
    set_aside(link.index);
  }
  return {};
}

}  // namespace warpline::message
