// SPDX-License-Identifier: Apache-2.0
// From which pool a message comes, and when it may go back there.
#include "warpline/message/internal/state.h"

namespace warpline {

std::uint32_t EndpointState::new_message(Session& session, TransferRole role) {
  return messages_.take(role, sessions_.id_of(session), session.epoch);
}

Session* EndpointState::session_of(const Message& message) {
  Session& session = sessions_[message.session];
  return session.epoch == message.epoch && session.phase != SessionPhase::free ? &session : nullptr;
}

void EndpointState::count_unread(Session& session, Message& message) {
  message.unread = true;
  session.unread += message.in_length;
}

void EndpointState::no_longer_unread(Message& message) {
  if (!message.unread) return;
  message.unread = false;
  Session* session = session_of(message);
  if (session == nullptr) return;
  session->unread -= message.in_length;
  // Worth a packet of its own if the peer was left with little.
  const std::uint32_t room = room_of(*session, endpoint_.config.receive_window);
  if (session->phase == SessionPhase::established && session->room_told < endpoint_.config.receive_window / 2 &&
      room - session->room_told >= endpoint_.config.receive_window / 4) {
    session->ack_now = true;
    ready_.add(*session);
  }
}

void EndpointState::finish(std::uint32_t index, MessageStatus status) {
  Message& message = messages_[index];
  if (message.state != MessageState::withdrawing) message.state = MessageState::ended;
  message.status = status;
  grants_.settle(message);
  if (message.in_transport != 0) {
    message.finishing = true;
    if (Session* session = session_of(message)) ++session->unfinished;
    return;
  }
  events_.add(index);
}

void EndpointState::free_slot(Session& session, Message& message) {
  if (!message.has_slot) return;
  message.has_slot = false;
  session.outgoing[message.slot].message = kNone;
  session.free_slots |= std::uint64_t{1} << message.slot;
  if (!session.ordered) return;
  session.orders_done |= std::uint64_t{1} << static_cast<std::uint16_t>(message.order - session.first_order);
  while ((session.orders_done & 1) != 0) {
    session.orders_done >>= 1;
    ++session.first_order;
  }
}

void EndpointState::try_free(std::uint32_t index) {
  const Message& message = messages_[index];
  const bool over = message.state == MessageState::ended && !message.event_due && !message.finishing;
  const bool own = message.role == TransferRole::own_request || message.role == TransferRole::own_message;
  if (over && !message.queued_to_send && message.in_transport == 0 && !(own && message.has_slot)) free_message(index);
}

void EndpointState::free_message(std::uint32_t index) {
  Message& message = messages_[index];
  no_longer_unread(message);
  grants_.settle(message);
  if (message.has_slot) {
    Session& session = sessions_[message.session];
    SlotUse& slot = session.incoming[message.slot];
    if (slot.message == index) slot.message = kNone;
  }
  messages_.give(index);
}

void EndpointState::end_response(std::uint32_t index, MessageStatus status) {
  if (messages_[index].tells_sent) {
    finish(index, status);
  } else {
    messages_[index].state = MessageState::ended;
    try_free(index);
  }
}

/// The peer, or the session's end, takes back a request or its half that arrived.
void EndpointState::withdraw_incoming(std::uint32_t index) {
  Message& message = messages_[index];
  Session& session = sessions_[message.session];
  if (message.has_slot) session.incoming[message.slot].message = kNone;
  message.has_slot = false;
  switch (message.state) {
    case MessageState::arriving:
      free_message(index);
      return;
    case MessageState::delivered:
      if (message.role == TransferRole::peer_message) return;
      no_longer_unread(message);
      message.state = MessageState::withdrawn;
      if (message.event_due) return;  // not handed out yet: poll() drops it
      message.withdrawn_due = true;
      events_.add(index);
      return;
    case MessageState::held_back:
      no_longer_unread(message);
      message.state = MessageState::withdrawn;  // freed in its turn
      return;
    case MessageState::sending:
      end_response(index, MessageStatus::cancelled);
      return;
    default:
      return;
  }
}

}  // namespace warpline
