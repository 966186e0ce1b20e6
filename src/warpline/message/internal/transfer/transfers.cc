// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/transfer/transfers.h"

#include <algorithm>
#include <bit>

namespace warpline::message {
namespace {

// A message for which there was no room is tried again.
constexpr std::int64_t kFirstWait = 250'000;  ///< nanoseconds
constexpr std::uint8_t kMaxDoublings = 7;

}  // namespace

void Transfers::take_slot(Session& session, std::uint32_t index) {
  Message& message = core_.messages[index];
  message.slot = static_cast<std::uint8_t>(std::countr_zero(session.free_slots));
  message.has_slot = true;
  session.free_slots &= session.free_slots - 1;
  SlotUse& slot = session.outgoing[message.slot];
  message.sequence = ++slot.sequence;
  slot.message = index;
  if (session.ordered) message.order = session.next_order++;
}

void Transfers::start(Session& session, std::uint32_t index) {
  Message& message = core_.messages[index];
  message.state = MessageState::sending;
  take_slot(session, index);
  if (message.fragments > 1) message.begin_window();
  enqueue(session, index);
}

/// As many of those that wait begin as find slots. The session may know its fragments' size better by now.
void Transfers::start_queued(Session& session) {
  while (any(session.queued, session.high_queued) && has_slot_free(session)) {
    const std::uint32_t index = core_.slot_queue.take(session);
    cut(core_.messages[index], session);
    start(session, index);
  }
}

Session* Transfers::session_of(const Message& message) {
  Session& session = core_.sessions[message.session];
  return session.epoch == message.epoch && session.phase != SessionPhase::free ? &session : nullptr;
}

void Transfers::free_slot(Session& session, Message& message) {
  if (!message.has_slot) return;
  const bool none_free = session.free_slots == 0;
  if (session.peer_leaves) [[unlikely]]
    core_.timers.arm(session, core_.context.now());
  message.has_slot = false;
  session.outgoing[message.slot].message = kNone;
  session.free_slots |= std::uint64_t{1} << message.slot;
  if (session.ordered && !message.settled) return settle_order(session, message);
  if (none_free) start_queued(session);
}

/// Those behind an own message in the order need not wait for it: it has ended, or the peer has all of it.
void Transfers::settle_order(Session& session, Message& message) {
  message.settled = true;
  session.orders_done |= std::uint64_t{1} << static_cast<std::uint16_t>(message.order - session.first_order);
  while ((session.orders_done & 1) != 0) {
    session.orders_done >>= 1;
    ++session.first_order;
  }
  start_queued(session);
}

void Transfers::free(std::uint32_t index) {
  Message& message = core_.messages[index];
  if (message.share != MemoryShare::none) give_up_share(core_.sessions[message.session], message);
  no_longer_unread(message);
  core_.grants.settle(message);
  if (message.group != kNone) {
    Session& session = core_.sessions[message.session];
    --session.places;
    if (message.has_slot) {
      SlotUse& slot = session.incoming[message.slot];
      if (slot.message == index) slot.message = kNone;
      if (session.peer_leaves) [[unlikely]]
        core_.timers.arm(session, core_.context.now());
    }
  }
  if (message.taken || message.charged) [[unlikely]]
    leave_shares(message);
  core_.messages.give(index);
}

/// A message that counts in PeerGroups beyond the places of its session is freed.
void Transfers::leave_shares(Message& message) {
  if (message.taken) core_.events.end_request(message);
  if (message.charged) core_.groups.refund_place(message);
}

void Transfers::finish(std::uint32_t index, MessageStatus status) {
  Message& message = core_.messages[index];
  if (message.state != MessageState::withdrawing) message.state = MessageState::ended;
  message.status = status;
  leave_queue(message);
  core_.grants.settle(message);
  if (message.in_endpoint) [[unlikely]]
    lend(message);
  if (message.in_transport != 0) {
    message.finishing = true;
    if (Session* session = session_of(message)) ++session->unfinished;
    return;
  }
  core_.events.add(index);
}

/// An own request is over whose response goes into the endpoint's memory.
void Transfers::lend(Message& message) {
  if (message.share != MemoryShare::none) give_up_share(core_.sessions[message.session], message);
  message.lent = message.status == MessageStatus::ok;
  if (!message.lent) core_.messages.give_in(message);
  if (message.lent && message.has(packet::MessageFragment::kStream)) {
    if (Session* session = session_of(message)) ++session->open_streams;
  }
}

void Transfers::take_back(Message& message) {
  message.lent = false;
  Session* const session = message.has(packet::MessageFragment::kStream) ? session_of(message) : nullptr;
  if (session == nullptr) return;
  --session->open_streams;
  if (session->peer_leaves) core_.timers.arm(*session, core_.context.now());
}

void Transfers::end_response(std::uint32_t index, MessageStatus status) {
  if (core_.messages[index].tells_sent) {
    finish(index, status);
  } else {
    core_.messages[index].state = MessageState::ended;
    leave_queue(core_.messages[index]);
    free_if_over(index);
  }
}

void Transfers::withdraw_own(Session& session, std::uint32_t index, MessageStatus status) {
  Message& message = core_.messages[index];
  if (message.state == MessageState::queued) {
    core_.slot_queue.remove_if(session, [index](std::uint32_t queued) { return queued == index; });
    return finish(index, status);
  }
  const bool untouched = message.state == MessageState::sending && message.next_fragment == 0;
  if (untouched && !session.ordered) {
    free_slot(session, message);
    finish(index, status);
    return;
  }
  tell_withdrawn(session, index);
  finish(index, status);
}

void Transfers::tell_withdrawn(Session& session, std::uint32_t index) {
  Message& message = core_.messages[index];
  message.state = MessageState::withdrawing;
  message.deferred = false;  // the peer needs no memory to be told
  message.next_fragment = 0;
  message.fragments = 1;
  enqueue(session, index);
}

void Transfers::end_unsent(Session& session) {
  // Pieces belong to streams that the peer has taken.
  const auto goes_on = [](const Message& message) {
    return message.has(packet::MessageFragment::kStream) && message.role == TransferRole::own_message;
  };
  core_.slot_queue.remove_if(session, [&](std::uint32_t index) {
    if (goes_on(core_.messages[index])) return false;
    turn_away(index);
    return true;
  });
  for (const SlotUse& slot : session.outgoing) {
    const std::uint32_t index = slot.message;
    if (index == kNone) continue;
    Message& message = core_.messages[index];
    if (message.state != MessageState::sending || message.reach != Reach::never_sent || goes_on(message)) continue;
    if (session.ordered) {
      tell_withdrawn(session, index);  // what the peer has of those behind it waits for its turn
    } else {
      free_slot(session, message);
    }
    turn_away(index);
  }
}

void Transfers::turn_away(std::uint32_t index) {
  Message& message = core_.messages[index];
  message.in_code = static_cast<std::uint16_t>(RefusalCode::going_away);
  if (!message.in_endpoint) message.in = nullptr;
  finish(index, MessageStatus::refused);
}

void Transfers::expire(Session& session) {
  session.first_deadline = kNever;
  // First those that wait: they take the slots of others that end.
  core_.slot_queue.remove_if(session, [&](std::uint32_t index) {
    const Message& message = core_.messages[index];
    if (message.deadline > core_.context.now()) {
      session.first_deadline = std::min(session.first_deadline, message.deadline);
      return false;
    }
    finish(index, MessageStatus::deadline);
    return true;
  });
  for (const SlotUse& slot : session.outgoing) {
    if (slot.message == kNone) continue;
    const Message& message = core_.messages[slot.message];
    if (message.state != MessageState::sending && message.state != MessageState::awaiting) continue;
    if (message.deadline <= core_.context.now()) {
      withdraw_own(session, slot.message, MessageStatus::deadline);
    } else {
      session.first_deadline = std::min(session.first_deadline, message.deadline);
    }
  }
}

void Transfers::end_all(Session& session) {
  for (MessageList* list : {&session.replies, &session.own, &session.high_replies, &session.high_own}) {
    for (std::uint32_t i = list->first; i != kNone;) {
      const std::uint32_t next = core_.messages[i].send_next;
      core_.messages[i].queued_to_send = false;
      free_if_over(i);
      i = next;
    }
    *list = {};
  }
  for (std::uint32_t i = session.held_back.first; i != kNone;) {
    const std::uint32_t next = core_.messages[i].send_next;
    free(i);
    i = next;
  }
  session.held_back = {};
  for (SlotUse& slot : session.outgoing) {
    const std::uint32_t index = slot.message;
    if (index == kNone) continue;
    slot.message = kNone;
    Message& message = core_.messages[index];
    message.has_slot = false;
    if (message.state == MessageState::withdrawing) {
      message.state = MessageState::ended;
      free_if_over(index);
    } else {
      finish(index, MessageStatus::peer_lost);
    }
  }
  for (SlotUse& slot : session.incoming) {
    const std::uint32_t index = slot.message;
    if (index == kNone) continue;
    if (core_.messages[index].state == MessageState::sending) {
      slot.message = kNone;
      core_.messages[index].has_slot = false;
      end_response(index, MessageStatus::peer_lost);
    } else {
      withdraw_incoming(index);
    }
  }
  session.free_slots = ~std::uint64_t{0};
  core_.slot_queue.remove_if(session, [&](std::uint32_t index) {
    finish(index, MessageStatus::peer_lost);
    return true;
  });
}

CallStatus Transfers::set_out_with_head(Message& message, const Session& session, ConstBuffer bytes, bool copy,
                                        std::span<const std::uint8_t> metadata) {
  if (bytes.length > kMaxMessageBytes || metadata.size() > kMaxMetadataBytes) return CallStatus::too_long;
  const CallStatus status = metadata.empty() ? core_.messages.take_out(message, bytes, copy)
                                             : core_.messages.take_out(message, bytes, copy, metadata);
  if (status != CallStatus::ok) return status;
  message.out_head = static_cast<std::uint16_t>(packet::MessageFragment::kTimeLeft + metadata.size());
  message.out_length += message.out_head;
  cut(message, session);
  return CallStatus::ok;
}

std::uint32_t Transfers::next_to_send(MessageList& list) {
  while (list.first != kNone) {
    const std::uint32_t index = list.first;
    Message& message = core_.messages[index];
    const bool alive = message.state == MessageState::sending || message.state == MessageState::withdrawing;
    // After begin_again().
    while (message.fragments > 1 && alive && message.window.has(message.next_fragment)) ++message.next_fragment;
    if (alive && !message.deferred && message.next_fragment < message.fragments) {
      // A message that the peer had no room for sends one fragment to ask whether there is room now.
      const std::uint32_t span = message.busy != 0 && message.window.base() == 0 ? 1 : FragmentWindow::kSpan;
      const bool beyond = message.state == MessageState::sending && message.fragments > 1 &&
                          message.next_fragment - message.window.base() >= span;
      const bool granted = std::uint64_t{message.next_fragment} * message.fragment_bytes < message.granted;
      if (!beyond && granted) return index;  // otherwise an acknowledgement or a grant brings it back
    }
    pop(list);
    free_if_over(index);
  }
  return kNone;
}

void Transfers::granted(Session& session, const packet::MessageFragment& fragment) {
  const bool response = fragment.kind == packet::FragmentKind::grant_response;
  const SlotUse& use = response ? session.incoming[fragment.slot] : session.outgoing[fragment.slot];
  if (use.message == kNone || use.sequence != fragment.sequence) return;
  Message& message = core_.messages[use.message];
  if (message.state != MessageState::sending || fragment.total != message.out_length) return;
  if (fragment.offset <= message.granted) return;
  message.granted = fragment.offset;
  if (message.next_fragment < message.fragments && !message.deferred) enqueue(session, use.message);
}

std::uint32_t Transfers::defer(Session& session, const packet::MessageFragment& fragment) {
  const bool response = fragment.kind == packet::FragmentKind::busy_response;
  const SlotUse& use = response ? session.incoming[fragment.slot] : session.outgoing[fragment.slot];
  if (use.message == kNone || use.sequence != fragment.sequence) return kNone;
  Message& message = core_.messages[use.message];
  if (message.state != MessageState::sending || message.deferred) return kNone;
  if (message.fragments > 1 && message.window.any()) return kNone;
  message.deferred = true;
  message.next_fragment = 0;
  const std::int64_t wait = kFirstWait << std::min(message.busy, kMaxDoublings);
  if (message.busy < kMaxDoublings) ++message.busy;
  session.retry_at = std::min(session.retry_at, core_.context.in(wait));
  core_.timers.arm(session, session.retry_at);
  return use.message;
}

void Transfers::retry_deferred(Session& session) {
  session.retry_at = kNever;
  const auto retry = [&](const SlotUse& slot) {
    if (slot.message == kNone || !core_.messages[slot.message].deferred) return;
    core_.messages[slot.message].deferred = false;
    if (core_.messages[slot.message].state == MessageState::sending) enqueue(session, slot.message);
  };
  for (const SlotUse& slot : session.outgoing) retry(slot);
  for (const SlotUse& slot : session.incoming) retry(slot);
}

void Transfers::acknowledged(Session& session, const SentPacket& packet) {
  if (packet.message == kNone) return;
  Message& message = core_.messages[packet.message];
  if (message.generation != packet.generation) return;
  if (packet.fragment == kGrantFragment) return;
  if (packet.fragment == kCancelFragment) {
    if (message.state != MessageState::withdrawing) return;
    message.state = MessageState::ended;
    free_slot(session, message);
    free_if_over(packet.message);
    return;
  }
  if (message.state != MessageState::sending) return;
  if (message.fragments > 1) {
    message.window.add(packet.fragment);
    if (message.window.base() < message.fragments) {
      // It may have waited for this, see next_to_send().
      if (message.next_fragment < message.fragments) enqueue(session, packet.message);
      return;
    }
  }
  sent_whole(session, packet.message);
}

void Transfers::sent_whole(Session& session, std::uint32_t index) {
  Message& message = core_.messages[index];
  switch (message.role) {
    case TransferRole::own_request:
      message.state = MessageState::awaiting;
      if (session.ordered) settle_order(session, message);
      return;
    case TransferRole::own_message:
      end_own(session, index, MessageStatus::ok);
      return;
    case TransferRole::peer_request:
      end_response(index, MessageStatus::ok);
      return;
    case TransferRole::peer_message:
    case TransferRole::free:
      return;
  }
}

bool Transfers::needs(const SentPacket& packet) const {
  if (packet.message == kNone) return false;
  const Message& message = core_.messages[packet.message];
  if (message.generation != packet.generation) return false;
  if (packet.fragment == kGrantFragment) {
    return message.owed != 0 && (message.state == MessageState::arriving || message.state == MessageState::awaiting);
  }
  if (packet.fragment == kCancelFragment) return message.state == MessageState::withdrawing;
  if (message.state != MessageState::sending) return false;
  return message.fragments == 1 || !message.window.has(packet.fragment);
}

void Transfers::begin_again(Session& session) {
  const auto again = [&](const SlotUse& slot) {
    if (slot.message == kNone) return;
    Message& message = core_.messages[slot.message];
    if (message.state == MessageState::sending && !message.deferred) {
      message.next_fragment = message.fragments > 1 ? message.window.base() : 0;
    } else if (message.state == MessageState::withdrawing) {
      message.next_fragment = 0;
    } else {
      return core_.grants.again(session, message);
    }
    enqueue(session, slot.message);
  };
  for (const SlotUse& slot : session.outgoing) again(slot);
  for (const SlotUse& slot : session.incoming) again(slot);
  if (core_.context.draining) session.go_away_due = true;
}

void Transfers::cut_again(Session& session) {
  for (const SlotUse& slot : session.outgoing) {
    if (slot.message == kNone) continue;
    Message& message = core_.messages[slot.message];
    if (message.state != MessageState::sending || message.out_length == 0) continue;
    cut(message, session);
    if (message.fragments > 1) message.begin_window();
  }
}

bool Transfers::cut_smaller(Session& session, std::uint32_t index) {
  Message& message = core_.messages[index];
  const std::uint32_t head = message.out_head != 0 ? packet::MessageFragment::kHeadLength : 0;
  const std::uint32_t longest = message.fragments == 1 ? message.out_length : message.fragment_bytes + head;
  if (message.state != MessageState::sending || longest <= session.fragment_bytes) return false;
  const std::uint32_t granted = message.granted;
  // The peer may know nothing yet of a message of which only the first fragment was sent, and have one that was sent
  // whole.
  const bool first_alone = granted <= message.fragment_bytes && granted < message.out_length;
  cut(message, session);
  if (!first_alone) message.granted = granted;
  message.begin_window();
  if (!message.deferred) enqueue(session, index);
  return true;
}

void Transfers::transmitted(std::uint64_t token) {
  const auto index = static_cast<std::uint32_t>(token);
  if (index >= core_.messages.capacity()) return;
  Message& message = core_.messages[index];
  if (message.generation != token >> 32 || message.in_transport == 0) return;
  if (--message.in_transport != 0) return;
  if (!message.finishing) {
    free_if_over(index);
    return;
  }
  message.finishing = false;
  core_.events.add(index);
  Session* session = session_of(message);
  if (session != nullptr && --session->unfinished == 0 && session->lost_pending) core_.events.add_lost(*session);
}

void Transfers::decline(std::uint32_t index, RefusalCode code) {
  Message& message = core_.messages[index];
  Session& session = core_.sessions[message.session];
  begin_waiting(session, core_.context.attended());
  no_longer_unread(message);
  core_.messages.give_in(message);
  if (message.taken) core_.events.end_request(message);
  message.refuse = true;
  message.flags = 0;
  message.out = nullptr;
  message.out_length = 0;
  message.granted = 0xffffffff;
  message.code = static_cast<std::uint16_t>(code);
  message.fragments = 1;
  message.next_fragment = 0;
  message.state = MessageState::sending;
  enqueue(session, index);
}

void Transfers::no_longer_unread(Message& message) {
  if (!message.unread) return;
  message.unread = false;
  Session* session = session_of(message);
  if (session == nullptr) return;
  if (!may_send_more(*session, core_.context.config.receive_window)) session->kept_at = core_.context.attended();
  session->unread -= message.in_length;
  // Worth a packet of its own if the peer was left with little.
  const std::uint32_t room = room_of(*session, core_.context.config.receive_window);
  if (session->phase == SessionPhase::established && session->room_told < core_.context.config.receive_window / 2 &&
      room - session->room_told >= core_.context.config.receive_window / 4) {
    session->ack_now = true;
    core_.ready.add(*session);
  }
}

void Transfers::withdraw_incoming(std::uint32_t index) {
  Message& message = core_.messages[index];
  Session& session = core_.sessions[message.session];
  if (message.has_slot) session.incoming[message.slot].message = kNone;
  message.has_slot = false;
  switch (message.state) {
    case MessageState::arriving:
      free(index);
      return;
    case MessageState::delivered:
      if (message.role == TransferRole::peer_message) return;
      no_longer_unread(message);
      message.state = MessageState::withdrawn;
      if (message.event_due) return;  // not handed out yet: poll() drops it
      message.withdrawn_due = true;
      core_.events.add(index);
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

}  // namespace warpline::message
