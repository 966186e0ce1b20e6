// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/transfer/event_reader.h"

namespace warpline::message {
namespace {

/// A copy of it is a few moves; GCC makes a `rep stos` of an initializer.
constexpr MessageEvent kNoEvent{};

}  // namespace

std::size_t EventReader::poll(std::span<MessageEvent> events, std::size_t requests) {
  // Until now the application may have had events of them in its hands.
  while (told_lost_ != kNone) {
    Session& session = core_.sessions[told_lost_];
    told_lost_ = session.lost_next;
    core_.sessions.give(session);
  }
  std::size_t count = 0;
  const bool bounded = requests != kUnbounded;
  while (count < events.size()) {
    const EventLink link = core_.events.take(requests);
    if (link.index == kNone) break;
    MessageEvent& event = events[count];
    event = kNoEvent;
    const bool tells =
        link.of == EventLink::Of::message ? message_event(link.index, event) : session_event(link, event);
    if (!tells) continue;
    ++count;
    if (!bounded || (event.kind != EventKind::request && event.kind != EventKind::stream_request)) continue;
    --requests;
    if (event.kind == EventKind::request) core_.events.begin_request(core_.messages[link.index]);
  }
  if (requests == 0) core_.events.set_requests_aside();  // there are more than the application takes
  return count;
}

bool EventReader::message_event(std::uint32_t index, MessageEvent& event) {
  Message& message = core_.messages[index];
  message.event_due = false;
  event.session = {message.session, message.session_generation};
  event.id = {index, message.generation,
              message.role == TransferRole::peer_request || message.role == TransferRole::peer_message};
  event.context = message.context;
  event.status = message.status;
  event.reach = message.reach;
  switch (message.role) {
    case TransferRole::own_request:
      event.kind = EventKind::response;
      event.code = message.in_code;
      event.data = message.in;
      event.device = message.in_device;
      event.length = message.in_length - message.in_head;
      if (message.in_head != 0 && message.lent) event.head = received_head(message);
      core_.context.counters.responses.add(message.status == MessageStatus::ok ? 1 : 0);
      transfers_.free_if_over(index);
      return true;
    case TransferRole::own_message:
      event.kind = EventKind::sent;
      event.code = message.in_code;
      event.length = message.out_length - message.out_head;
      transfers_.free_if_over(index);
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
      transfers_.free_if_over(index);
      return false;
    }
    event.kind = EventKind::withdrawn;
    return true;
  }
  if (message.state == MessageState::withdrawn) {  // before anyone saw it
    transfers_.free(index);
    return false;
  }
  if (message.state == MessageState::ended) {
    event.kind = EventKind::sent;
    event.length = message.out_length - message.out_head;
    transfers_.free_if_over(index);
    return true;
  }
  if (message.in_head != 0) [[unlikely]] {
    if (core_.messages.head_of(message).expires <= core_.context.now()) {
      core_.context.counters.requests_expired.add(1);
      transfers_.decline(index, RefusalCode::expired);
      return false;
    }
    event.head = received_head(message);
  }
  event.kind = message.role == TransferRole::peer_request ? EventKind::request : EventKind::message;
  if (message.has(packet::MessageFragment::kStream)) [[unlikely]]
    event.kind = event.kind == EventKind::request ? EventKind::stream_request : EventKind::stream_piece;
  event.code = message.in_code;
  event.more = message.has(packet::MessageFragment::kMore);
  event.data = message.in;
  event.device = message.in_device;
  event.length = message.in_length - message.in_head;
  core_.context.counters.handled.add(1);
  return true;
}

/// Returns what the head of a message with in_head says, as an event points to it.
const ReceivedHead* EventReader::received_head(const Message& message) {
  MessageHead& head = core_.messages.head_of(message);
  head.received.metadata = {head.in_metadata, message.in_head - packet::MessageFragment::kTimeLeft};
  head.received.deadline = head.expires == kNever ? kNever : core_.context.outer(head.expires);
  return &head.received;
}

bool EventReader::session_event(EventLink link, MessageEvent& event) {
  Session& session = core_.sessions[link.index];
  event.session = core_.sessions.id_of(session);
  event.context = session.context;
  if (link.of == EventLink::Of::opened) {
    session.opened_event = false;
    if (session.forgotten) {
      core_.sessions.give(session);
      return false;
    }
    event.kind = session.opened_here ? EventKind::connected : EventKind::accepted;
    return true;
  }
  session.lost_event = false;
  if (session.forgotten) {
    core_.sessions.give(session);
    return false;
  }
  event.kind = EventKind::lost;
  event.reason = session.reason;
  if (!session.opened_here) {
    session.lost_next = told_lost_;
    told_lost_ = link.index;
  }
  return true;
}

}  // namespace warpline::message
