// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/event_queue.h"

namespace warpline::message {
namespace {

// A link in 32 bits: what it is of in the first two.
constexpr unsigned kOfShift = 30;
constexpr std::uint32_t kIndexMask = (1U << kOfShift) - 1;

std::uint32_t packed(EventLink link) { return static_cast<std::uint32_t>(link.of) << kOfShift | link.index; }

EventLink unpacked(std::uint32_t bits) { return {bits & kIndexMask, static_cast<EventLink::Of>(bits >> kOfShift)}; }

/// Appends to a list in which next(index) is behind `index`.
template <typename Next>
void append(MessageList& list, std::uint32_t index, const Next& next) {
  next(index) = kNone;
  (list.last == kNone ? list.first : next(list.last)) = index;
  list.last = index;
}

template <typename Next>
std::uint32_t pop_first(MessageList& list, const Next& next) {
  const std::uint32_t index = list.first;
  list.first = next(index);
  if (list.first == kNone) list.last = kNone;
  return index;
}

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
  const auto next_request = [&](std::uint32_t index) -> std::uint32_t& { return messages_[index].event_next; };
  const auto next_group = [&](std::uint32_t index) -> std::uint32_t& { return groups_.turns_of(index).next; };
  const std::uint32_t address = messages_[request].group;
  const std::uint32_t prefix = groups_.prefix_of(address);
  MessageList& addresses = groups_.turns_of(prefix).waiting;
  MessageList& requests = groups_.turns_of(address).waiting;
  if (addresses.first == kNone) append(prefixes_, prefix, next_group);
  if (requests.first == kNone) append(addresses, address, next_group);
  append(requests, request, next_request);
}

std::uint32_t EventQueue::take_turn() {
  const auto next_request = [&](std::uint32_t index) -> std::uint32_t& { return messages_[index].event_next; };
  const auto next_group = [&](std::uint32_t index) -> std::uint32_t& { return groups_.turns_of(index).next; };
  const std::uint32_t prefix = pop_first(prefixes_, next_group);
  MessageList& addresses = groups_.turns_of(prefix).waiting;
  const std::uint32_t address = pop_first(addresses, next_group);
  MessageList& requests = groups_.turns_of(address).waiting;
  const std::uint32_t request = pop_first(requests, next_request);
  if (requests.first != kNone) append(addresses, address, next_group);
  if (addresses.first != kNone) append(prefixes_, prefix, next_group);
  groups_.free_if_gone(address);
  groups_.free_if_gone(prefix);
  return request;
}

EventLink EventQueue::pop() {
  const EventLink link = unpacked(first_);
  first_ = next(link);
  if (first_ == kNone) end_ = &first_;
  return link;
}

void EventQueue::set_requests_aside() {
  while (first_ != kNone && is_request(unpacked(first_))) set_aside(pop().index);
}

EventLink EventQueue::take(bool requests) {
  if (!requests || prefixes_.first != kNone) set_requests_aside();
  const bool aside = requests && prefixes_.first != kNone;
  if (aside && (aside_next_ || first_ == kNone)) {
    aside_next_ = false;
    return {take_turn(), EventLink::Of::message};
  }
  aside_next_ = true;
  return first_ == kNone ? EventLink{} : pop();
}

}  // namespace warpline::message
