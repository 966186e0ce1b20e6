// SPDX-License-Identifier: Apache-2.0
// How sessions begin and end.
#include <algorithm>
#include <bit>

#include "warpline/message/internal/state.h"
#include "warpline/message/protection.h"

namespace warpline {

Session* EndpointState::find(SessionId id) {
  if (id.index >= sessions.size()) return nullptr;
  Session& session = sessions[id.index];
  const bool alive = session.phase != SessionPhase::free && session.generation == id.generation && !session.forgotten;
  return alive ? &session : nullptr;
}

Session* EndpointState::new_session(const PeerAddress& peer) {
  if (free_sessions.empty()) return nullptr;
  Session& session = sessions[free_sessions.back()];
  free_sessions.pop_back();
  const std::uint32_t generation = session.generation + 1;
  const std::uint32_t epoch = session.epoch;
  // The queues may still hold it from before; they drop what is not due.
  const bool ready_before = session.ready;
  const bool starved_before = session.starved_listed;
  const std::uint32_t starved_next = session.starved_next;
  const bool listed_before = session.ack_listed;
  const bool paced_before = session.paced;
  const bool wanting_before = session.wants_grants;
  const std::uint32_t wanting_next = session.wanting_next;
  const std::uint32_t ready_next = session.ready_next;
  const std::uint32_t ack_next = session.ack_next;
  session = Session{};
  session.ready = ready_before;
  session.starved_listed = starved_before;
  session.starved_next = starved_next;
  session.ack_listed = listed_before;
  session.paced = paced_before;
  session.wants_grants = wanting_before;
  session.wanting_next = wanting_next;
  session.ready_next = ready_next;
  session.ack_next = ack_next;
  session.generation = generation;
  session.epoch = epoch;
  session.peer = peer;
  return &session;
}

/// From a clean slate to the phase `opening`; what names the session and its peer stays.
void EndpointState::begin(Session& session) {
  ++session.epoch;
  session.phase = SessionPhase::opening;
  session.cookie = 0;
  session.confirmed = session.denied = session.peer_grants = session.bundles = false;
  session.datagram_bytes = config.datagram_bytes;
  session.fragment_bytes = config.datagram_bytes;
  session.received = PacketWindow{};
  session.unacknowledged = 0;
  session.marked = session.marked_seen = 0;
  session.unread = 0;
  session.sent = SentPackets{};
  session.first_in_flight = session.next_lost = session.acked_end = session.newest_acked = 0;
  session.lost_packets = session.in_flight_bytes = session.in_flight_packets = session.own_in_flight = 0;
  session.room = 0;
  session.room_number = 0;
  session.reordering = false;
  session.reorder_windows = 1;
  session.reorder_at = kNever;
  session.rtt = RttEstimator{};
  session.send_at = Nanos{};
  session.unanswered = 0;
  session.ack_now = session.ping = session.probe = session.accept_due = session.room_blocked = false;
  session.opened = session.quiet_from = session.last_sent = now();
  session.first_deadline = session.retry_at = kNever;
  session.busy_count = 0;
  session.free_slots = ~std::uint64_t{0};
  session.unfinished = 0;
  session.next_order = session.first_order = session.expected_order = 0;
  session.orders_done = session.orders_void = 0;
  session.reason = LossReason::none;
  session.outgoing.fill({});
  session.incoming.fill({});
}

Opened EndpointState::connect(const PeerAddress& peer, const SessionOptions& options) {
  Session* session = new_session(peer);
  if (session == nullptr) return {CallStatus::no_memory, {}};
  session->opened_here = true;
  session->context = options.context;
  session->ordered = options.ordered;
  session->go_back_n = config.reliability == Reliability::go_back_n;
  begin(*session);
  begin_hello(*session);
  return {CallStatus::ok, id_of(*session)};
}

CallStatus EndpointState::reconnect(SessionId id) {
  Session* session = find(id);
  if (session == nullptr) return CallStatus::unknown_session;
  const bool over = session->phase == SessionPhase::lost && !session->lost_event && !session->lost_pending;
  if (!over || !session->opened_here) return CallStatus::not_allowed;
  begin(*session);
  begin_hello(*session);
  return CallStatus::ok;
}

CallStatus EndpointState::close(SessionId id) {
  Session* session = find(id);
  if (session == nullptr || session->phase == SessionPhase::lost) return CallStatus::unknown_session;
  if (session->phase == SessionPhase::established) {
    // Once, without acknowledgement: whoever misses it is told by a reset.
    if (stray_count < strays.size() && may_acknowledge(*session)) {
      StrayReply& stray = strays[(stray_first + stray_count++) % strays.size()];
      Outgoing out;
      out.head = stray.bytes.data();
      out.head_capacity = StrayReply::kMaxLength;
      write_bare(*session, out, kMessageClose);
      stray.to = session->peer;
      stray.length = out.head_length;
    }
  }
  lose(*session, LossReason::closed_here);
  return CallStatus::ok;
}

CallStatus EndpointState::forget(SessionId id) {
  Session* session = find(id);
  if (session == nullptr) return CallStatus::unknown_session;
  const bool over =
      session->phase == SessionPhase::lost && !session->opened_here && !session->lost_event && !session->lost_pending;
  if (over) return CallStatus::unknown_session;  // poll() frees it
  session->forgotten = true;                     // keeps `lost` from being queued
  if (session->phase != SessionPhase::lost) lose(*session, LossReason::closed_here);
  session->lost_pending = false;
  if (session->phase == SessionPhase::lost && !session->opened_event && !session->lost_event) free_session(*session);
  return CallStatus::ok;
}

void EndpointState::lose(Session& session, LossReason reason) {
  const bool told = session.opened_here || session.confirmed;
  if (session.phase == SessionPhase::established) {
    peers.erase(session.peer, session.remote, index_of(session));
    if (config.protection != nullptr) config.protection->stop(index_of(session));
  }
  session.phase = SessionPhase::lost;
  session.reason = reason;
  session.cookie = 0;
  session.sent.clear(blocks);
  session.in_flight_bytes = session.in_flight_packets = session.lost_packets = 0;
  if (wheel.cancel(session.timer)) --armed_sessions;
  wheel.cancel(session.idle_timer);
  session.armed = kNever;
  for (MessageList* list : {&session.replies, &session.own}) {
    for (std::uint32_t i = list->first; i != kNone;) {
      const std::uint32_t next = messages[i].send_next;
      messages[i].queued_to_send = false;
      try_free(i);
      i = next;
    }
    *list = {};
  }
  for (std::uint32_t i = session.held_back.first; i != kNone;) {
    const std::uint32_t next = messages[i].send_next;
    free_message(i);
    i = next;
  }
  session.held_back = {};
  for (SlotUse& slot : session.outgoing) {
    const std::uint32_t index = slot.message;
    if (index == kNone) continue;
    slot.message = kNone;
    Message& message = messages[index];
    message.has_slot = false;
    if (message.state == MessageState::withdrawing) {
      message.state = MessageState::ended;
      try_free(index);
    } else {
      finish(index, MessageStatus::peer_lost);
    }
  }
  for (SlotUse& slot : session.incoming) {
    const std::uint32_t index = slot.message;
    if (index == kNone) continue;
    if (messages[index].state == MessageState::sending) {
      slot.message = kNone;
      messages[index].has_slot = false;
      end_response(index, MessageStatus::peer_lost);
    } else {
      withdraw_incoming(index);
    }
  }
  session.free_slots = ~std::uint64_t{0};
  if (!told) {
    free_session(session);
    return;
  }
  counters.sessions_lost.add(1);
  if (session.unfinished == 0) {
    queue_lost_event(session);
  } else {
    session.lost_pending = true;
  }
}

void EndpointState::queue_lost_event(Session& session) {
  session.lost_pending = false;
  if (session.forgotten) return;
  session.lost_event = true;
  queue_event(EventLink{index_of(session), EventLink::Of::lost});
}

void EndpointState::free_session(Session& session) {
  if (session.opened_event || session.lost_event) {  // comes back here from poll()
    session.forgotten = true;
    return;
  }
  session.phase = SessionPhase::free;
  session.forgotten = false;
  free_sessions.push_back(index_of(session));
}

SessionFacts EndpointState::facts(SessionId id) {
  const Session* session = find(id);
  if (session == nullptr) return {};
  SessionFacts facts;
  facts.peer = session->peer;
  facts.established = session->phase == SessionPhase::established;
  facts.smoothed_rtt = session->rtt.smoothed();
  facts.min_rtt = session->rtt.min();
  facts.rto = probe_timeout(*session);
  facts.window_bytes = session->allowed.window_bytes;
  facts.in_flight_bytes = session->in_flight_bytes;
  facts.in_flight_packets = session->in_flight_packets;
  facts.messages = kSlots - static_cast<std::uint32_t>(std::popcount(session->free_slots));
  facts.fragment_bytes = session->fragment_bytes;
  return facts;
}

}  // namespace warpline
