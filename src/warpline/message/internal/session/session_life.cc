// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/session/session_life.h"

#include <bit>

#include "warpline/message/protection.h"

namespace warpline::message {

void SessionLife::begin(Session& session) {
  ++session.epoch;
  session.phase = SessionPhase::opening;
  core_.groups.join(session);
  session.cookie = 0;
  session.confirmed = session.denied = session.peer_grants = session.bundles = false;
  session.most_bytes = static_cast<std::uint16_t>(core_.context.config.datagram_bytes);
  set_datagram_bytes(session, session.most_bytes, core_.context.is_protected());  // until the path is known
  session.path_probe = false;
  session.vanished = 0;
  session.vanish_from = 0;
  session.received = PacketWindow{};
  session.newest = 0;
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
  session.reorder_persist = 0;
  session.losses = 0;
  session.widened = false;
  session.reorder_at = kNever;
  session.rtt = RttEstimator{};
  session.send_at = Nanos{};
  session.unanswered = 0;
  session.ack_now = session.ping = session.probe = session.accept_due = session.room_blocked = false;
  session.opened = session.quiet_from = session.kept_at = core_.context.attended();
  session.last_sent = core_.context.now();
  session.first_deadline = session.retry_at = session.stalled_at = kNever;
  session.busy_count = 0;
  session.free_slots = ~std::uint64_t{0};
  session.unfinished = 0;
  session.next_order = session.first_order = session.expected_order = 0;
  session.orders_done = session.orders_void = 0;
  session.reason = LossReason::none;
  session.outgoing.fill({});
  session.incoming.fill({});
}

CallStatus SessionLife::close(SessionId id) {
  Session* session = core_.sessions.find(id);
  if (session == nullptr || session->phase == SessionPhase::lost) return CallStatus::unknown_session;
  if (session->phase == SessionPhase::established) {
    // Once, without acknowledgement: whoever misses it is told by a reset.
    if (!core_.strays.full() && recovery_.may_acknowledge(*session)) {
      StrayReply& stray = core_.strays.add(session->peer);
      Outgoing out;
      out.head = stray.bytes.data();
      out.head_capacity = StrayReply::kMaxLength;
      writer_.write_bare(*session, out, packet::kMessageClose);
      stray.length = out.head_length;
    }
  }
  lose(*session, LossReason::closed_here);
  return CallStatus::ok;
}

CallStatus SessionLife::forget(SessionId id) {
  Session* session = core_.sessions.find(id);
  if (session == nullptr) return CallStatus::unknown_session;
  const bool over =
      session->phase == SessionPhase::lost && !session->opened_here && !session->lost_event && !session->lost_pending;
  if (over) return CallStatus::unknown_session;  // poll() frees it
  session->forgotten = true;                     // keeps `lost` from being queued
  if (session->phase != SessionPhase::lost) lose(*session, LossReason::closed_here);
  session->lost_pending = false;
  if (session->phase == SessionPhase::lost && !session->opened_event && !session->lost_event)
    core_.sessions.give(*session);
  return CallStatus::ok;
}

void SessionLife::lose(Session& session, LossReason reason) {
  const bool told = session.opened_here || session.confirmed;
  if (session.phase == SessionPhase::established) {
    core_.sessions.hide(session);
    core_.paths.leave(session);
  }
  if (core_.context.is_protected()) core_.context.config.protection->stop(core_.sessions.index_of(session));
  session.phase = SessionPhase::lost;
  session.reason = reason;
  session.cookie = 0;
  recovery_.forget(session);
  core_.timers.cancel(session);
  transfers_.end_all(session);
  core_.groups.leave(session);
  if (!told) {
    core_.sessions.give(session);
    return;
  }
  core_.context.counters.sessions_lost.add(1);
  if (session.unfinished == 0) {
    core_.events.add_lost(session);
  } else {
    session.lost_pending = true;
  }
}

SessionFacts SessionLife::facts(SessionId id) {
  const Session* session = core_.sessions.find(id);
  if (session == nullptr) return {};
  SessionFacts facts;
  facts.peer = session->peer;
  facts.established = session->phase == SessionPhase::established;
  if (facts.established && core_.context.is_protected()) {
    facts.key = core_.context.config.protection->key(core_.sessions.index_of(*session));
  }
  facts.smoothed_rtt = session->rtt.smoothed();
  facts.min_rtt = session->rtt.min();
  facts.rto = core_.timers.probe_timeout(*session);
  facts.window_bytes = session->allowed.window_bytes;
  facts.in_flight_bytes = session->in_flight_bytes;
  facts.in_flight_packets = session->in_flight_packets;
  facts.messages = kSlots - static_cast<std::uint32_t>(std::popcount(session->free_slots));
  facts.datagram_bytes = session->datagram_bytes;
  facts.fragment_bytes = session->fragment_bytes;
  return facts;
}

}  // namespace warpline::message
