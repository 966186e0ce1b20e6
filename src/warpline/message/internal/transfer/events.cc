// SPDX-License-Identifier: Apache-2.0
// The queue of what poll() hands out: links through messages and sessions, so that it is never full.
#include "warpline/message/internal/state.h"

namespace warpline {
namespace {

/// A copy of it is a few moves; GCC makes a `rep stos` of an initializer.
constexpr MessageEvent kNoEvent{};

std::uint32_t& next_index(EndpointState& state, EventLink link) {
  switch (link.of) {
    case EventLink::Of::opened:
      return state.sessions[link.index].opened_next;
    case EventLink::Of::lost:
      return state.sessions[link.index].lost_next;
    case EventLink::Of::message:
      break;
  }
  return state.messages[link.index].event_next;
}

// A link in 32 bits: what it is of in the first two.
constexpr unsigned kOfShift = 30;
constexpr std::uint32_t kIndexMask = (1U << kOfShift) - 1;

std::uint32_t packed(EventLink link) {
  return link.index == kNone ? kNone : static_cast<std::uint32_t>(link.of) << kOfShift | link.index;
}

EventLink unpacked(std::uint32_t bits) {
  if (bits == kNone) return {};
  return {bits & kIndexMask, static_cast<EventLink::Of>(bits >> kOfShift)};
}

}  // namespace

void EndpointState::queue_event(EventLink link) {
  next_index(*this, link) = kNone;
  if (last_event.index == kNone) {
    first_event = link;
  } else {
    next_index(*this, last_event) = packed(link);
  }
  last_event = link;
}

void EndpointState::queue_event(std::uint32_t message) {
  messages[message].event_due = true;
  queue_event(EventLink{message, EventLink::Of::message});
}

/// Whether the event tells of a request that nobody has withdrawn.
bool EndpointState::is_request(EventLink link) const {
  if (link.of != EventLink::Of::message) return false;
  const Message& message = messages[link.index];
  return message.role == TransferRole::peer_request && message.state == MessageState::delivered;
}

void EndpointState::set_aside(std::uint32_t request) {
  messages[request].event_next = kNone;
  MessageList& list = set_aside_requests;
  (list.last == kNone ? list.first : messages[list.last].event_next) = request;
  list.last = request;
}

std::size_t EndpointState::poll(std::span<MessageEvent> events, std::size_t requests) {
  // Until now the application may have had events of them in its hands.
  while (told_lost != kNone) {
    Session& session = sessions[told_lost];
    told_lost = session.lost_next;
    free_session(session);
  }
  std::size_t count = 0;
  while (count < events.size()) {
    EventLink link;
    if (set_aside_requests.first != kNone && requests != 0) {
      link = {set_aside_requests.first, EventLink::Of::message};
      set_aside_requests.first = messages[link.index].event_next;
      if (set_aside_requests.first == kNone) set_aside_requests.last = kNone;
    } else if (first_event.index != kNone) {
      link = first_event;
      first_event = unpacked(next_index(*this, link));
      if (first_event.index == kNone) last_event = {};
      if (requests == 0 && is_request(link)) {
        set_aside(link.index);
        continue;
      }
    } else {
      break;
    }
    MessageEvent& event = events[count];
    event = kNoEvent;
    const bool tells =
        link.of == EventLink::Of::message ? message_event(link.index, event) : session_event(link, event);
    if (!tells) continue;
    ++count;
    if (event.kind == EventKind::request) --requests;
  }
  return count;
}

bool EndpointState::message_event(std::uint32_t index, MessageEvent& event) {
  Message& message = messages[index];
  message.event_due = false;
  event.session = {message.session, message.session_generation};
  event.id = {index, message.generation,
              message.role == TransferRole::peer_request || message.role == TransferRole::peer_message};
  event.context = message.context;
  event.status = message.status;
  switch (message.role) {
    case TransferRole::own_request:
      event.kind = EventKind::response;
      event.code = message.in_code;
      event.data = message.in;
      event.device = message.in_device;
      event.length = message.in_length;
      counters.responses.add(message.status == MessageStatus::ok ? 1 : 0);
      try_free(index);
      return true;
    case TransferRole::own_message:
      event.kind = EventKind::sent;
      event.code = message.in_code;
      event.length = message.out_length;
      try_free(index);
      return true;
    case TransferRole::peer_message:
    case TransferRole::peer_request:
      break;
    case TransferRole::free:
      return false;
  }
  if (message.withdrawn_due) {
    message.withdrawn_due = false;
    if (message.state == MessageState::ended) {  // the application was quicker
      try_free(index);
      return false;
    }
    event.kind = EventKind::withdrawn;
    return true;
  }
  if (message.state == MessageState::withdrawn) {  // before anyone saw it
    free_message(index);
    return false;
  }
  if (message.state == MessageState::ended) {
    event.kind = EventKind::sent;
    event.length = message.out_length;
    try_free(index);
    return true;
  }
  event.kind = message.role == TransferRole::peer_request ? EventKind::request : EventKind::message;
  event.code = message.in_code;
  event.more = message.more;
  event.data = message.in;
  event.device = message.in_device;
  event.length = message.in_length;
  counters.handled.add(1);
  return true;
}

bool EndpointState::session_event(EventLink link, MessageEvent& event) {
  Session& session = sessions[link.index];
  event.session = id_of(session);
  event.context = session.context;
  if (link.of == EventLink::Of::opened) {
    session.opened_event = false;
    if (session.forgotten) {
      free_session(session);
      return false;
    }
    event.kind = session.opened_here ? EventKind::connected : EventKind::accepted;
    return true;
  }
  session.lost_event = false;
  if (session.forgotten) {
    free_session(session);
    return false;
  }
  event.kind = EventKind::lost;
  event.reason = session.reason;
  if (!session.opened_here) {
    session.lost_next = told_lost;
    told_lost = link.index;
  }
  return true;
}

}  // namespace warpline
