// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/transfer/submissions.h"

#include <algorithm>

namespace warpline::message {
namespace {

using packet::MessageFragment;

/// MessageFragment::flags of what is sent so.
std::uint8_t flags_of(bool more, bool stream, bool high) {
  return static_cast<std::uint8_t>((more ? MessageFragment::kMore : 0) | (stream ? MessageFragment::kStream : 0) |
                                   (high ? MessageFragment::kHigh : 0));
}

}  // namespace

template <typename SetOut>
Submitted Submissions::begin_own(SessionId id, TransferRole role, bool of_open_stream, const SetOut& set_out) {
  Session* session = core_.sessions.find(id);
  if (session == nullptr || session->phase == SessionPhase::lost) return {CallStatus::unknown_session, {}};
  if (session->peer_leaves && !of_open_stream) [[unlikely]]
    return {CallStatus::going_away, {}};
  const bool waits = !has_slot_free(*session);
  if (waits && core_.slot_queue.full()) {
    core_.context.counters.queue_full.add(1);
    return {CallStatus::no_slot, {}};
  }
  const std::uint32_t index = transfers_.create(*session, role);
  if (index == kNone) return {CallStatus::no_memory, {}};
  Message& message = core_.messages[index];
  const CallStatus status = set_out(message, *session);
  if (status != CallStatus::ok) {
    transfers_.free(index);
    return {status, {}};
  }
  begin_waiting(*session, core_.context.attended());
  if (waits) [[unlikely]] {
    core_.context.counters.messages_queued.add(1);
    core_.slot_queue.add(*session, index);
  } else {
    transfers_.start(*session, index);
  }
  return {CallStatus::ok, {index, message.generation, false}};
}

Submitted Submissions::request(SessionId id, ConstBuffer bytes, MutableBuffer response, const RequestOptions& options) {
  if (options.response_in_endpoint && response.data != nullptr) return {CallStatus::not_allowed, {}};
  const auto set_out = [&](Message& message, Session& session) {
    const bool timed = options.deadline != kNever;
    const CallStatus status = transfers_.set_out(message, session, bytes, options.copy, options.metadata, timed);
    if (status != CallStatus::ok) return status;
    message.context = options.context;
    message.code = options.code;
    message.flags = flags_of(false, options.stream, options.priority == Priority::high && !session.ordered);
    message.in = response.data;
    message.in_capacity = response.data == nullptr ? 0 : response.length;
    message.in_device = response.device;
    if (options.response_in_endpoint) {
      message.in_endpoint = true;
      message.in_capacity = core_.context.config.max_message_bytes;
    }
    if (timed) {
      message.deadline = core_.context.inner(options.deadline);
      session.first_deadline = std::min(session.first_deadline, message.deadline);
      core_.timers.arm(session, message.deadline);
    }
    core_.context.counters.requests.add(1);
    return status;
  };
  return begin_own(id, TransferRole::own_request, false, set_out);
}

Submitted Submissions::send(SessionId id, ConstBuffer bytes, const SendOptions& options) {
  const auto set_out = [&](Message& message, const Session& session) {
    message.context = options.context;
    message.code = options.code;
    message.flags = flags_of(options.more, options.stream, options.priority == Priority::high && !session.ordered);
    return transfers_.set_out(message, session, bytes, options.copy, options.metadata, false);
  };
  return begin_own(id, TransferRole::own_message, options.stream, set_out);
}

CallStatus Submissions::respond(const MessageId& id, ConstBuffer bytes, const SendOptions& options) {
  Message* message = core_.messages.find(id);
  if (message == nullptr || message->role != TransferRole::peer_request) return CallStatus::unknown_message;
  if (message->state == MessageState::withdrawn && !(message->event_due && !message->withdrawn_due)) {
    message->state = MessageState::ended;
    transfers_.free_if_over(id.index);
    return CallStatus::unknown_message;
  }
  if (message->state != MessageState::delivered || message->event_due) return CallStatus::unknown_message;
  Session& session = core_.sessions[message->session];
  const CallStatus status = transfers_.set_out(*message, session, bytes, options.copy, options.metadata, false);
  if (status != CallStatus::ok) return status;
  begin_waiting(session, core_.context.attended());
  transfers_.no_longer_unread(*message);
  // The request's buffer stays while the response may be part of it.
  message->tells_sent = message->out != message->bytes.data() && (message->owned & kOwnsOut) == 0;
  if (!message->tells_sent) {
    core_.messages.give_in(*message);
    if (message->taken) core_.events.end_request(*message);
  }
  message->state = MessageState::sending;
  message->context = options.context;
  message->code = options.code;
  const bool high = options.priority == Priority::high || message->has(MessageFragment::kHigh);
  message->flags = flags_of(options.more, options.stream, high);
  if (message->fragments > 1) message->begin_window();
  transfers_.enqueue(session, id.index);
  return CallStatus::ok;
}

CallStatus Submissions::cancel(const MessageId& id) {
  Message* message = core_.messages.find(id);
  const bool own =
      message != nullptr && (message->role == TransferRole::own_request || message->role == TransferRole::own_message);
  const bool alive = own && (message->state == MessageState::queued || message->state == MessageState::sending ||
                             message->state == MessageState::awaiting);
  if (!alive) return CallStatus::unknown_message;
  transfers_.withdraw_own(core_.sessions[message->session], id.index, MessageStatus::cancelled);
  return CallStatus::ok;
}

CallStatus Submissions::release(const MessageId& id) {
  Message* message = core_.messages.find(id);
  if (message == nullptr) return CallStatus::unknown_message;
  if (message->role == TransferRole::own_request) {
    if (!message->lent || message->event_due || message->finishing) return CallStatus::unknown_message;
    transfers_.take_back(*message);
    transfers_.free_if_over(id.index);
    return CallStatus::ok;
  }
  if (message->role == TransferRole::peer_request) {
    if (message->state == MessageState::withdrawn) return respond(id, {}, {});
    if (message->state != MessageState::delivered || message->event_due) return CallStatus::unknown_message;
    transfers_.decline(id.index, RefusalCode::declined);
    return CallStatus::ok;
  }
  if (message->role != TransferRole::peer_message || message->state != MessageState::delivered || message->event_due) {
    return CallStatus::unknown_message;
  }
  transfers_.free(id.index);
  return CallStatus::ok;
}

}  // namespace warpline::message
