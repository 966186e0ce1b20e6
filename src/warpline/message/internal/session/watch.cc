// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/session/watch.h"

#include <algorithm>

namespace warpline {

void Watch::advance() {
  if (grants_.next_tick() <= endpoint_.now()) grants_.tick();
  timers_.advance([&](Session& session, Timers::Timer timer) {
    switch (timer) {
      case Timers::Timer::due:
        return on_timer(session);
      case Timers::Timer::idle:
        return watch_idle(session);
      case Timers::Timer::pacing:
        return ready_.add(session);
    }
  });
}

Nanos Watch::next_deadline() {
  const Nanos acknowledgement = ready_.next_acknowledgement();
  if (ready_.has_any() || !strays_.empty() || grants_.due()) return endpoint_.outer(endpoint_.now());
  const Nanos due = std::min({timers_.next_deadline(), grants_.next_tick(), acknowledgement});
  return due == kNever ? kNever : endpoint_.outer(due);
}

void Watch::on_timer(Session& session) {
  const std::uint32_t epoch = session.epoch;
  const auto over = [&] {
    return session.epoch != epoch ||
           (session.phase != SessionPhase::opening && session.phase != SessionPhase::established);
  };
  if (over()) return;
  if (session.first_deadline <= endpoint_.now()) transfers_.expire(session);
  const auto late = [&] {
    return endpoint_.now().value - session.opened.value >= endpoint_.config.connect_timeout.value;
  };
  if (session.phase == SessionPhase::opening) {
    if (late()) return life_.lose(session, LossReason::no_answer);
    if (session.next_hello <= endpoint_.now()) {
      session.hello_due = true;
      session.next_hello = kNever;
      ready_.add(session);
    }
  } else {
    if (session.retry_at <= endpoint_.now()) transfers_.retry_deferred(session);
    if (!session.confirmed && late()) return life_.lose(session, LossReason::no_answer);
    if (session.reorder_at <= endpoint_.now()) {
      recovery_.detect_losses(session);
      if (session.lost_packets != 0) ready_.add(session);
    }
    if (session.in_flight_packets == 0 && session.sent.span() != 0) recovery_.raise_floor(session);
    on_silence(session);
    if (over()) return;
    const auto probe = [&] { return Nanos{session.last_sent.value + timers_.probe_timeout(session).value}; };
    if (session.in_flight_packets != 0 && probe() <= endpoint_.now()) on_probe_timeout(session);
  }
  timers_.arm_next(session);
}

void Watch::ping(Session& session) {
  session.ping = true;
  session.last_sent = endpoint_.now();
  ready_.add(session);
}

void Watch::watch_idle(Session& session) {
  const bool idle = !awaits(session);
  if (idle && endpoint_.now().value - session.quiet_from.value >= endpoint_.config.keepalive.value) {
    session.quiet_from = endpoint_.now();
    ping(session);
  }
  const Nanos from = idle ? session.quiet_from : endpoint_.now();
  timers_.watch_idle(session, Nanos{from.value + endpoint_.config.keepalive.value});
  timers_.arm_next(session);
}

void Watch::on_silence(Session& session) {
  if (!awaits(session)) return;
  const std::int64_t quiet = endpoint_.now().value - session.quiet_from.value;
  const bool in_flight = session.in_flight_packets != 0;
  if (quiet >= timers_.patience_with(session).value && session.unanswered >= Timers::kUnansweredIsSilent) {
    return life_.lose(session, session.denied ? LossReason::restarted : LossReason::silent);
  }
  const bool blocked_long = session.room_blocked &&
                            endpoint_.now().value - session.last_sent.value >= endpoint_.config.peer_timeout.value / 8;
  if (!in_flight && !session.ping && (quiet >= endpoint_.config.peer_timeout.value / 4 || blocked_long)) ping(session);
}

/// The first time a probe for a lost tail (RFC 8985, section 7), then timeouts with backoff (RFC 6298, section 5).
void Watch::on_probe_timeout(Session& session) {
  session.last_sent = endpoint_.now();
  if (session.unanswered == 0 && !session.go_back_n) {
    session.unanswered = 1;
    session.probe = true;
    endpoint_.counters.probes.add(1);
    return ready_.add(session);
  }
  if (session.unanswered < 0xff) ++session.unanswered;
  endpoint_.counters.timeouts.add(1);
  recovery_.on_timeout(session);
  session.ping = true;  // unless a fragment goes out first
  ready_.add(session);
}

}  // namespace warpline
