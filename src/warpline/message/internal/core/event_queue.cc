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
  const std::uint32_t address = messages_[request].group;
  MessageList& requests = groups_.turns_of(address).waiting;
  const bool first = requests.first == kNone;
  append(requests, request, [this](std::uint32_t index) -> std::uint32_t& { return messages_[index].event_next; });
  if (first) list(address);
}

/// An address gets turns.
void EventQueue::list(std::uint32_t address) {
  const auto next_group = [this](std::uint32_t index) -> std::uint32_t& { return groups_.turns_of(index).next; };
  const std::uint32_t prefix = groups_.prefix_of(address);
  MessageList& addresses = groups_.turns_of(prefix).waiting;
  if (addresses.first == kNone) append(prefixes_, prefix, next_group);
  append(addresses, address, next_group);
}

/// The request whose turn it is; kNone if all that have turns have their shares of the application's places.
std::uint32_t EventQueue::take_turn(std::size_t places) {
  const auto next_request = [this](std::uint32_t index) -> std::uint32_t& { return messages_[index].event_next; };
  const auto next_group = [this](std::uint32_t index) -> std::uint32_t& { return groups_.turns_of(index).next; };
  while (prefixes_.first != kNone) {
    const std::uint32_t prefix = pop_first(prefixes_, next_group);
    PeerGroups::Turns& of_prefix = groups_.turns_of(prefix);
    of_prefix.passed = !groups_.may_take_of_prefix(prefix, places);
    if (of_prefix.passed) continue;
    const std::uint32_t address = pop_first(of_prefix.waiting, next_group);
    PeerGroups::Turns& of_address = groups_.turns_of(address);
    of_address.passed = !groups_.may_take_of_address(address, places);
    std::uint32_t request = kNone;
    if (!of_address.passed) {
      request = pop_first(of_address.waiting, next_request);
      if (of_address.waiting.first != kNone) append(of_prefix.waiting, address, next_group);
    }
    if (of_prefix.waiting.first != kNone) append(prefixes_, prefix, next_group);
    if (request == kNone) continue;
    groups_.free_if_gone(address);
    groups_.free_if_gone(prefix);
    return request;
  }
  return kNone;
}

void EventQueue::begin_request(Message& message) {
  message.taken = true;
  ++groups_.turns_of(message.group).taken;
  ++groups_.turns_of(groups_.prefix_of(message.group)).taken;
}

void EventQueue::end_request(Message& message) {
  message.taken = false;
  const std::uint32_t address = message.group;
  const std::uint32_t prefix = groups_.prefix_of(address);
  PeerGroups::Turns& of_address = groups_.turns_of(address);
  PeerGroups::Turns& of_prefix = groups_.turns_of(prefix);
  --of_address.taken;
  --of_prefix.taken;
  if (of_prefix.passed)
    append(prefixes_, prefix, [this](std::uint32_t index) -> std::uint32_t& { return groups_.turns_of(index).next; });
  if (of_address.passed) list(address);
  of_prefix.passed = of_address.passed = false;
  groups_.free_if_gone(address);
  groups_.free_if_gone(prefix);
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

/// Whether a request may be handed out before any that are set aside.
bool EventQueue::may_take(std::uint32_t request, std::size_t places) const {
  const std::uint32_t address = messages_[request].group;
  return groups_.turns_of(address).waiting.first == kNone && groups_.may_take_of_address(address, places) &&
         groups_.may_take_of_prefix(groups_.prefix_of(address), places);
}

EventLink EventQueue::take(std::size_t requests) {
  if (requests == kUnbounded && prefixes_.first == kNone) [[likely]]
    return first_ == kNone ? EventLink{} : pop();
  if (requests == 0 || prefixes_.first != kNone) set_requests_aside();
  if (requests != 0 && prefixes_.first != kNone && (aside_next_ || first_ == kNone)) {
    aside_next_ = false;
    if (const std::uint32_t request = take_turn(requests); request != kNone) return {request, EventLink::Of::message};
  }
  aside_next_ = true;
  while (first_ != kNone) {
    const EventLink link = pop();
    if (!is_request(link) || may_take(link.index, requests)) return link;
    set_aside(link.index);
  }
  return {};
}

}  // namespace warpline::message
