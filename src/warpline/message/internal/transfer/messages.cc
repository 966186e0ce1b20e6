// SPDX-License-Identifier: Apache-2.0
// What the application does with messages_.
#include <algorithm>
#include <bit>
#include <cstring>

#include "warpline/message/internal/state.h"

namespace warpline {

/// What is to be sent, and in how many fragments.
CallStatus EndpointState::set_out(Message& message, const Session& session, ConstBuffer bytes, bool copy) {
  const CallStatus status = messages_.take_out(message, bytes, copy);
  if (status != CallStatus::ok) return status;
  message.fragments = bytes.length == 0 ? 1 : (bytes.length - 1) / session.fragment_bytes + 1;
  message.next_fragment = 0;
  message.granted = first_granted(session);
  return CallStatus::ok;
}

void EndpointState::enqueue(Session& session, std::uint32_t index) {
  Message& message = messages_[index];
  if (message.queued_to_send) return;
  message.queued_to_send = true;
  append(messages_, message.role == TransferRole::peer_request || message.refuse ? session.replies : session.own,
         index);
  ready_.add(session);
}

Submitted EndpointState::begin_own(SessionId id, TransferRole role, ConstBuffer bytes, bool copy) {
  Session* session = sessions_.find(id);
  if (session == nullptr || session->phase == SessionPhase::lost) return {CallStatus::unknown_session, {}};
  if (bytes.length > kMaxMessageBytes) return {CallStatus::too_long, {}};
  if (session->free_slots == 0) return {CallStatus::no_slot, {}};
  if (session->ordered && static_cast<std::uint16_t>(session->next_order - session->first_order) >= kOrderSpan) {
    return {CallStatus::no_slot, {}};
  }
  const std::uint32_t index = new_message(*session, role);
  if (index == kNone) return {CallStatus::no_memory, {}};
  Message& message = messages_[index];
  const CallStatus status = set_out(message, *session, bytes, copy);
  if (status != CallStatus::ok) {
    free_message(index);
    return {status, {}};
  }
  begin_waiting(*session);
  message.state = MessageState::sending;
  message.slot = static_cast<std::uint8_t>(std::countr_zero(session->free_slots));
  message.has_slot = true;
  session->free_slots &= session->free_slots - 1;
  SlotUse& slot = session->outgoing[message.slot];
  message.sequence = ++slot.sequence;
  slot.message = index;
  if (session->ordered) message.order = session->next_order++;
  return {CallStatus::ok, {index, message.generation, false}};
}

Submitted EndpointState::request(SessionId id, ConstBuffer bytes, MutableBuffer response,
                                 const RequestOptions& options) {
  const Submitted submitted = begin_own(id, TransferRole::own_request, bytes, options.copy);
  if (submitted.status != CallStatus::ok) return submitted;
  Message& message = messages_[submitted.id.index];
  Session& session = sessions_[id.index];
  message.context = options.context;
  message.code = options.code;
  message.in = response.data;
  message.in_capacity = response.data == nullptr ? 0 : response.length;
  message.in_device = response.device;
  if (options.deadline != kNever) {
    message.deadline = endpoint_.inner(options.deadline);
    session.first_deadline = std::min(session.first_deadline, message.deadline);
    timers_.arm(session, message.deadline);
  }
  endpoint_.counters.requests.add(1);
  if (message.fragments > 1) message.begin_window();
  enqueue(session, submitted.id.index);
  return submitted;
}

Submitted EndpointState::send(SessionId id, ConstBuffer bytes, const SendOptions& options) {
  const Submitted submitted = begin_own(id, TransferRole::own_message, bytes, options.copy);
  if (submitted.status != CallStatus::ok) return submitted;
  Message& message = messages_[submitted.id.index];
  message.context = options.context;
  message.code = options.code;
  message.more = options.more;
  if (message.fragments > 1) message.begin_window();
  enqueue(sessions_[id.index], submitted.id.index);
  return submitted;
}

CallStatus EndpointState::respond(const MessageId& id, ConstBuffer bytes, const SendOptions& options) {
  Message* message = messages_.find(id);
  if (message == nullptr || message->role != TransferRole::peer_request) return CallStatus::unknown_message;
  if (message->state == MessageState::withdrawn && !(message->event_due && !message->withdrawn_due)) {
    message->state = MessageState::ended;
    try_free(id.index);
    return CallStatus::unknown_message;
  }
  if (message->state != MessageState::delivered || message->event_due) return CallStatus::unknown_message;
  if (bytes.length > kMaxMessageBytes) return CallStatus::too_long;
  Session& session = sessions_[message->session];
  const CallStatus status = set_out(*message, session, bytes, options.copy);
  if (status != CallStatus::ok) return status;
  begin_waiting(session);
  no_longer_unread(*message);
  // The request's buffer stays while the response may be part of it.
  message->tells_sent = message->out != message->bytes.data() && !message->out_own_memory;
  if (!message->tells_sent) messages_.give_in(*message);
  message->state = MessageState::sending;
  message->context = options.context;
  message->code = options.code;
  message->more = options.more;
  if (message->fragments > 1) message->begin_window();
  enqueue(session, id.index);
  return CallStatus::ok;
}

CallStatus EndpointState::cancel(const MessageId& id) {
  Message* message = messages_.find(id);
  const bool own =
      message != nullptr && (message->role == TransferRole::own_request || message->role == TransferRole::own_message);
  const bool alive = own && (message->state == MessageState::sending || message->state == MessageState::awaiting);
  if (!alive) return CallStatus::unknown_message;
  withdraw_own(sessions_[message->session], id.index, MessageStatus::cancelled);
  return CallStatus::ok;
}

/// Ends an own message early; its slot is free when the peer knows.
void EndpointState::withdraw_own(Session& session, std::uint32_t index, MessageStatus status) {
  Message& message = messages_[index];
  const bool untouched = message.state == MessageState::sending && message.next_fragment == 0;
  if (untouched && !session.ordered) {
    free_slot(session, message);
    finish(index, status);
    return;
  }
  message.state = MessageState::withdrawing;
  message.deferred = false;  // the peer needs no memory to be told
  message.next_fragment = 0;
  message.fragments = 1;
  finish(index, status);
  enqueue(session, index);
}

CallStatus EndpointState::release(const MessageId& id) {
  Message* message = messages_.find(id);
  if (message == nullptr || !id.incoming) return CallStatus::unknown_message;
  if (message->role == TransferRole::peer_request) {
    if (message->state == MessageState::withdrawn) return respond(id, {}, {});
    if (message->state != MessageState::delivered || message->event_due) return CallStatus::unknown_message;
    message->refuse = true;
    SendOptions options;
    options.code = static_cast<std::uint16_t>(RefusalCode::declined);
    return respond(id, {}, options);
  }
  if (message->role != TransferRole::peer_message || message->state != MessageState::delivered || message->event_due) {
    return CallStatus::unknown_message;
  }
  free_message(id.index);
  return CallStatus::ok;
}

void EndpointState::transmitted(std::uint64_t token) {
  const auto index = static_cast<std::uint32_t>(token);
  if (index >= messages_.capacity()) return;
  Message& message = messages_[index];
  if (message.generation != token >> 32 || message.in_transport == 0) return;
  if (--message.in_transport != 0) return;
  if (!message.finishing) {
    try_free(index);
    return;
  }
  message.finishing = false;
  events_.add(index);
  Session* session = session_of(message);
  if (session != nullptr && --session->unfinished == 0 && session->lost_pending) events_.add_lost(*session);
}

/// The peer takes more of what is being sent.
void EndpointState::take_grant(Session& session, const MessageFragment& fragment) {
  const bool response = fragment.kind == FragmentKind::grant_response;
  const SlotUse& use = response ? session.incoming[fragment.slot] : session.outgoing[fragment.slot];
  if (use.message == kNone || use.sequence != fragment.sequence) return;
  Message& message = messages_[use.message];
  if (message.state != MessageState::sending || fragment.total != message.out_length) return;
  if (fragment.offset <= message.granted) return;
  message.granted = fragment.offset;
  if (message.next_fragment < message.fragments && !message.deferred) enqueue(session, use.message);
}

}  // namespace warpline
