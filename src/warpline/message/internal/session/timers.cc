// SPDX-License-Identifier: Apache-2.0
// One timer a session for what is due, lazy: it is moved only when something is due earlier, and finds out what is due
// when it fires. A session that awaits nothing has none: of thousands, each moved to the far end of the wheel and back,
// none of their neighbours there is in the cache. Signs of life of such are up to a second timer that stays where it is
// while requests come and go.
#include <algorithm>

#include "warpline/message/internal/state.h"

namespace warpline {
namespace {

constexpr std::uint8_t kMaxBackoff = 20;
constexpr std::int64_t kPollingSlack = 15'000;  ///< nanoseconds
/// Signs of life without an answer before silence counts.
constexpr std::uint8_t kUnansweredIsSilent = 2;
constexpr std::uint32_t kFewSessions = 8;  ///< with a timer: disarm() leaves it

Nanos doubled(Nanos time, unsigned times, Nanos most) {
  return time.value > most.value >> times ? most : Nanos{time.value << times};
}

}  // namespace

void EndpointState::advance() {
  if (grants.tick_at <= now()) tick_grants();
  wheel.advance(now(), [&](std::uint32_t entry) {
    Session& session = sessions[entry / 4];
    switch (static_cast<Timer>(entry % 4)) {
      case Timer::due:
        session.armed = kNever;
        --armed_sessions;
        return on_timer(session);
      case Timer::idle:
        return watch_idle(session);
      case Timer::pacing:
        session.paced = false;
        return make_ready(session);
    }
  });
}

void EndpointState::arm(Session& session, Nanos at) {
  if (at >= session.armed) return;
  if (session.armed == kNever) {
    ++armed_sessions;
  } else {
    wheel.cancel(session.timer);
  }
  session.timer = wheel.schedule(wheel_entry(session, Timer::due), at);
  session.armed = at;
}

/// Nothing is in flight any more. Of many sessions each is then silent for long: to take its timer away costs less than
/// to find out, when it fires, that nothing is due. Of few, the next request finds the timer as it is.
void EndpointState::disarm(Session& session) {
  if (session.armed == kNever || armed_sessions <= kFewSessions || next_due(session) != kNever) return;
  wheel.cancel(session.timer);
  session.armed = kNever;
  --armed_sessions;
}

bool EndpointState::awaits(const Session& session) const {
  return session.in_flight_packets != 0 || session.free_slots != ~std::uint64_t{0} || session.replies.first != kNone;
}

void EndpointState::begin_waiting(Session& session) {
  if (!awaits(session)) session.quiet_from = now();
}

Nanos EndpointState::probe_timeout(const Session& session) const {
  const unsigned backoff = std::min<std::uint8_t>(session.unanswered == 0 ? 0 : session.unanswered - 1, kMaxBackoff);
  // With backoff, which eRPC lacks: on a path slower than the timeout all would be sent again for ever.
  if (session.go_back_n) return doubled(config.fixed_rto, backoff, std::max(config.fixed_rto, config.max_rto));
  if (!session.rtt.known()) return doubled(config.initial_rto, backoff, config.max_rto);
  const std::int64_t timeout = session.rtt.timeout(Nanos{1000}).value + session.max_ack_delay.value;
  const Nanos rto = doubled(Nanos{std::max(timeout, config.min_rto.value)}, backoff, config.max_rto);
  if (session.unanswered != 0) return rto;
  // RFC 8985, section 7.2, and some more for a peer that polls.
  const std::int64_t probe = 2 * session.rtt.smoothed().value + session.max_ack_delay.value + kPollingSlack;
  return std::min(Nanos{probe}, rto);
}

/// How long a peer may be silent while something is awaited. Less, if somebody says that it is gone: if it is not, it
/// answers soon.
Nanos EndpointState::patience_with(const Session& session) const {
  return Nanos{session.denied ? config.peer_timeout.value / 8 : config.peer_timeout.value};
}

Nanos EndpointState::next_due(const Session& session) const {
  const auto after = [](Nanos time, std::int64_t wait) { return Nanos{time.value + wait}; };
  Nanos due = std::min(session.first_deadline, session.retry_at);
  if (session.phase == SessionPhase::opening) {
    return std::min({due, session.next_hello, after(session.opened, config.connect_timeout.value)});
  }
  if (session.phase != SessionPhase::established) return kNever;
  if (!session.confirmed) due = std::min(due, after(session.opened, config.connect_timeout.value));
  due = std::min(due, session.reorder_at);
  if (session.in_flight_packets != 0) {
    const Nanos probe = after(session.last_sent, probe_timeout(session).value);
    const Nanos silent = after(session.quiet_from, patience_with(session).value);
    return std::min({due, probe, session.unanswered < kUnansweredIsSilent ? std::max(silent, probe) : silent});
  }
  // Nothing awaited: what raise_floor() kept in case that it was only late may go.
  if (session.sent.span() != 0 && session.lost_packets == 0) {
    due = std::min(due, after(session.last_sent, 2 * session.rtt.smoothed().value + 1000));
  }
  const std::int64_t patience = config.peer_timeout.value;
  if (session.room_blocked && session.own.first != kNone) due = std::min(due, after(session.last_sent, patience / 8));
  return awaits(session) ? std::min(due, after(session.quiet_from, patience / 4)) : due;
}

Nanos EndpointState::next_deadline() {
  while (acks.first != kNone && sessions[acks.first].unacknowledged == 0) {
    Session& session = sessions[acks.first];
    acks.first = session.ack_next;
    if (acks.first == kNone) acks.last = kNone;
    session.ack_listed = false;
  }
  const bool at_once =
      ready.first != kNone || stray_count != 0 || (starved.first != kNone && blocks.available() > blocks_when_starved);
  if (at_once || may_grant()) return clock.outer(now());
  Nanos due = std::min(wheel.next_deadline(), grants.tick_at);
  if (acks.first != kNone) due = std::min(due, sessions[acks.first].ack_at);
  return due == kNever ? kNever : clock.outer(due);
}

void EndpointState::on_timer(Session& session) {
  const std::uint32_t epoch = session.epoch;
  const auto over = [&] {
    return session.epoch != epoch ||
           (session.phase != SessionPhase::opening && session.phase != SessionPhase::established);
  };
  if (over()) return;
  if (session.first_deadline <= now()) expire_requests(session);
  const auto late = [&] { return now().value - session.opened.value >= config.connect_timeout.value; };
  if (session.phase == SessionPhase::opening) {
    if (late()) return lose(session, LossReason::no_answer);
    if (session.next_hello <= now()) {
      session.hello_due = true;
      session.next_hello = kNever;
      make_ready(session);
    }
  } else {
    if (session.retry_at <= now()) retry_deferred(session);
    if (!session.confirmed && late()) return lose(session, LossReason::no_answer);
    if (session.reorder_at <= now()) {
      detect_losses(session);
      if (session.lost_packets != 0) make_ready(session);
    }
    if (session.in_flight_packets == 0 && session.sent.span() != 0) raise_floor(session);
    on_silence(session);
    if (over()) return;
    const auto probe = [&] { return Nanos{session.last_sent.value + probe_timeout(session).value}; };
    if (session.in_flight_packets != 0 && probe() <= now()) on_probe_timeout(session);
  }
  arm(session, next_due(session));
}

void EndpointState::ping(Session& session) {
  session.ping = true;
  session.last_sent = now();
  make_ready(session);
}

/// Again and again from when the session is established until it is lost.
void EndpointState::watch_idle(Session& session) {
  const bool idle = !awaits(session);
  if (idle && now().value - session.quiet_from.value >= config.keepalive.value) {
    session.quiet_from = now();
    ping(session);
  }
  const Nanos from = idle ? session.quiet_from : now();
  session.idle_timer = wheel.schedule(wheel_entry(session, Timer::idle), Nanos{from.value + config.keepalive.value});
  arm(session, next_due(session));
}

void EndpointState::on_silence(Session& session) {
  if (!awaits(session)) return;
  const std::int64_t quiet = now().value - session.quiet_from.value;
  const bool in_flight = session.in_flight_packets != 0;
  if (quiet >= patience_with(session).value && session.unanswered >= kUnansweredIsSilent) {
    return lose(session, session.denied ? LossReason::restarted : LossReason::silent);
  }
  const bool blocked_long =
      session.room_blocked && now().value - session.last_sent.value >= config.peer_timeout.value / 8;
  if (!in_flight && !session.ping && (quiet >= config.peer_timeout.value / 4 || blocked_long)) ping(session);
}

/// The first time a probe for a lost tail (RFC 8985, section 7), then timeouts with backoff (RFC 6298, section 5).
void EndpointState::on_probe_timeout(Session& session) {
  session.last_sent = now();
  if (session.unanswered == 0 && !session.go_back_n) {
    session.unanswered = 1;
    session.probe = true;
    counters.probes.add(1);
    return make_ready(session);
  }
  if (session.unanswered < 0xff) ++session.unanswered;
  counters.timeouts.add(1);
  mark_all_lost(session);
  session.allowed = session.congestion.on_loss(now(), true);
  session.ping = true;  // unless a fragment goes out first
  make_ready(session);
}

void EndpointState::expire_requests(Session& session) {
  session.first_deadline = kNever;
  for (const SlotUse& slot : session.outgoing) {
    if (slot.message == kNone) continue;
    const Message& message = messages[slot.message];
    if (message.state != MessageState::sending && message.state != MessageState::awaiting) continue;
    if (message.deadline <= now()) {
      withdraw_own(session, slot.message, MessageStatus::deadline);
    } else {
      session.first_deadline = std::min(session.first_deadline, message.deadline);
    }
  }
}

}  // namespace warpline
