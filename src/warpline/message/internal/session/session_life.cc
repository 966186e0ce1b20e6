// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/session/session_life.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "warpline/message/protection.h"

namespace warpline::message {
namespace {

constexpr std::int64_t kLastWords = 100'000;  ///< nanoseconds that an acknowledgement has to leave

}  // namespace

void SessionLife::begin(Session& session) {
  ++session.epoch;
  session.phase = SessionPhase::opening;
  core_.groups.join(session);
  session.cookie = 0;
  session.confirmed = session.peer_grants = session.bundles = false;
  session.most_bytes = static_cast<std::uint16_t>(core_.context.config.datagram_bytes);
  set_datagram_bytes(session, session.most_bytes, core_.context.is_protected());  // until the path is known
  session.path_probe = false;
  session.challenge_from = Nanos{};
  session.moved_from = 0;
  session.vanished = 0;
  session.vanish_from = 0;
  session.vanish_share = 0;
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
  session.go_away_due = session.peer_leaves = false;
  session.ack_now = session.ping = session.probe = session.accept_due = session.room_blocked = false;
  session.opened = session.quiet_from = session.kept_at = core_.context.attended();
  session.last_sent = core_.context.now();
  session.first_deadline = session.retry_at = session.stalled_at = kNever;
  session.busy_count = 0;
  session.free_slots = ~std::uint64_t{0};
  session.unfinished = 0;
  session.open_streams = 0;
  session.next_order = session.first_order = session.expected_order = 0;
  session.orders_done = session.orders_void = 0;
  session.reason = session.doubt = LossReason::none;
  session.doubted_at = Nanos{};  // longer ago than any wait: the inner clock starts at a second
  session.outgoing.fill({});
  session.incoming.fill({});
}

CallStatus SessionLife::close(SessionId id) {
  Session* session = core_.sessions.find(id);
  if (session == nullptr || session->phase == SessionPhase::lost) return CallStatus::unknown_session;
  say_closed(*session);
  lose(*session, LossReason::closed_here);
  return CallStatus::ok;
}

/// Once, without acknowledgement: whoever misses it is told by a reset.
void SessionLife::say_closed(Session& session) {
  if (session.phase != SessionPhase::established) return;
  if (core_.farewells.full() || !recovery_.may_acknowledge(session)) return;
  StrayReply& stray = core_.farewells.add(session.peer);
  Outgoing out;
  out.head = stray.bytes.data();
  out.head_capacity = StrayReply::kMaxLength;
  writer_.write_bare(session, out, packet::kMessageClose);
  stray.length = out.head_length;
}

void SessionLife::drain(Nanos deadline) {
  core_.context.drain_until = deadline;
  if (std::exchange(core_.context.draining, true)) return;
  for (std::uint32_t i = 0; i < core_.sessions.size(); ++i) {
    Session& session = core_.sessions[i];
    if (session.phase == SessionPhase::established && session.confirmed) tell_going(session);
  }
}

void SessionLife::tell_going(Session& session) {
  session.go_away_due = true;
  core_.ready.add(session);
  const auto begun = [&](std::uint32_t index) {
    const std::uint16_t order = core_.messages[index].order;
    if (static_cast<std::int16_t>(order - session.last_order) > 0) session.last_order = order;
  };
  session.last_order = static_cast<std::uint16_t>(session.expected_order - 1);
  for (const SlotUse& slot : session.incoming) {
    if (slot.message != kNone && core_.messages[slot.message].state == MessageState::arriving) begun(slot.message);
  }
  for (std::uint32_t i = session.held_back.first; i != kNone; i = core_.messages[i].send_next) begun(i);
}

void SessionLife::end_drain() {
  for (std::uint32_t i = 0; i < core_.sessions.size() && !core_.farewells.full(); ++i) {
    Session& session = core_.sessions[i];
    const bool lives = session.phase == SessionPhase::opening || session.phase == SessionPhase::established;
    if (!lives || session.opened_here) continue;
    say_closed(session);
    lose(session, LossReason::closed_here);
  }
  if (core_.groups.accepted() == 0) core_.context.drain_until = kNever;
}

void SessionLife::peer_leaves(Session& session) {
  if (session.peer_leaves) return;
  session.peer_leaves = true;
  transfers_.end_unsent(session);
}

bool SessionLife::leave_if_over(Session& session) {
  if (!session.peer_leaves || !session.opened_here) return false;
  if (session.open_streams != 0) return false;
  const auto has_message = [](const SlotUse& slot) { return slot.message != kNone; };
  if (session.free_slots != ~std::uint64_t{0} || std::ranges::any_of(session.incoming, has_message)) return false;
  if (session.unacknowledged != 0 || session.ack_now || core_.farewells.full()) {
    session.ack_now = true;  // for the last answer, or the peer would not know that it is here
    core_.ready.add(session);
    core_.timers.arm(session, core_.context.in(kLastWords));
    return false;
  }
  say_closed(session);
  lose(session, LossReason::going_away);
  return true;
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
  session.unacknowledged = 0;
  recovery_.forget(session);
  transfers_.end_all(session);
  core_.timers.cancel(session);
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
  facts.going_away = session->peer_leaves;
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
