// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/session/watch.h"

#include <algorithm>

namespace warpline::message {
namespace {

/// Probes in a row that nothing answered after which a session leaves blocks of sent packets to others that lack them.
constexpr std::uint8_t kUnansweredGivesWay = 3;

/// A peer that is heard but acknowledges nothing is lost after so many times peer_timeout: by default 120 s, above the
/// 100 s that RFC 1122, section 4.2.3.5, asks for at least.
constexpr std::int64_t kInVain = 8;

}  // namespace

void Watch::advance() {
  if (core_.context.drain_until <= core_.context.now()) life_.end_drain();
  if (core_.grants.next_tick() <= core_.context.now()) core_.grants.tick();
  core_.timers.advance([&](Session& session, Timers::Timer timer) {
    switch (timer) {
      case Timers::Timer::due:
        return on_timer(session);
      case Timers::Timer::idle:
        return watch_idle(session);
      case Timers::Timer::pacing:
        return core_.ready.add(session);
    }
  });
}

Nanos Watch::next_due() {
  if (core_.ready.has_any() || !core_.strays.empty() || !core_.farewells.empty() || core_.grants.due()) return kAtOnce;
  return std::min({core_.timers.next_deadline(), core_.grants.next_tick(), core_.ready.next_acknowledgement(),
                   core_.context.drain_until});
}

Nanos Watch::next_deadline() {
  const Nanos due = next_due();
  return core_.context.outer(due == kAtOnce ? core_.context.now() : due);
}

void Watch::note_absence(Nanos before) {
  const std::int64_t due = std::max(next_due(), before).value;
  core_.context.note_late(before, core_.context.now().value - due);
}

void Watch::on_timer(Session& session) {
  const std::uint32_t epoch = session.epoch;
  const auto over = [&] {
    return session.epoch != epoch ||
           (session.phase != SessionPhase::opening && session.phase != SessionPhase::established);
  };
  if (over()) return;
  if (session.first_deadline <= core_.context.now()) transfers_.expire(session);
  const auto late = [&] {
    return core_.context.attended().value - session.opened.value >= core_.context.config.connect_timeout.value;
  };
  if (session.phase == SessionPhase::opening) {
    if (late()) return life_.lose(session, LossReason::no_answer);
    if (session.next_hello <= core_.context.now()) {
      session.hello_due = true;
      session.next_hello = kNever;
      core_.ready.add(session);
    }
  } else {
    if (life_.leave_if_over(session)) return;
    if (session.retry_at <= core_.context.now()) transfers_.retry_deferred(session);
    if (session.stalled_at <= core_.context.attended() && !reassembly_.expire(session)) {
      return life_.lose(session, LossReason::stalled);
    }
    if (!session.confirmed && late()) return life_.lose(session, LossReason::no_answer);
    if (session.reorder_at <= core_.context.now()) {
      recovery_.detect_losses(session, core_.context.now());
      if (session.lost_packets != 0) core_.ready.add(session);
    }
    if (session.in_flight_packets == 0 && session.sent.span() != 0) recovery_.raise_floor(session);
    on_silence(session);
    if (over()) return;
    const auto probe = [&] { return Nanos{session.last_sent.value + core_.timers.probe_timeout(session).value}; };
    if (session.in_flight_packets != 0 && probe() <= core_.context.now()) on_probe_timeout(session);
    if (over()) return;
  }
  core_.timers.arm_next(session);
}

void Watch::ping(Session& session) {
  session.ping = true;
  session.last_sent = core_.context.now();
  core_.ready.add(session);
}

void Watch::watch_idle(Session& session) {
  const EndpointContext& context = core_.context;
  const bool idle = session.confirmed && !awaits(session);
  if (idle && context.attended().value - session.quiet_from.value >= context.config.keepalive.value) {
    session.quiet_from = context.attended();
    ping(session);
  }
  recovery_.seek_path(session);
  const Nanos from = idle ? session.quiet_from : context.attended();
  core_.timers.watch_idle(session, context.when_attended({from.value + context.config.keepalive.value}));
  core_.timers.arm_next(session);
}

void Watch::on_silence(Session& session) {
  if (!awaits(session)) return;
  const std::int64_t quiet = core_.context.attended().value - session.quiet_from.value;
  const bool in_flight = session.in_flight_packets != 0;
  if (core_.timers.silent_at(session) <= core_.context.attended() &&
      session.unanswered >= Timers::kUnansweredIsSilent) {
    return life_.lose(session, session.doubt == LossReason::none ? LossReason::silent : session.doubt);
  }
  const bool blocked_long =
      session.room_blocked && core_.context.now().value - session.last_sent.value >= core_.timers.room_patience().value;
  if (!in_flight && !session.ping && (quiet >= core_.context.config.peer_timeout.value / 4 || blocked_long))
    ping(session);
}

/// A probe, for a lost tail (RFC 8985, section 7) or a peer that is away, then again with backoff; nothing counts as
/// lost until an acknowledgement says so (RFC 9002, section 6.2). Go-back-n has a timeout instead (RFC 6298, section
/// 5).
void Watch::on_probe_timeout(Session& session) {
  session.last_sent = core_.context.now();
  if (session.unanswered == 0) session.unanswered_from = core_.context.attended();
  if (session.unanswered < 0xff) ++session.unanswered;
  // A peer that sends but acknowledges nothing would keep what it holds here for as long as it likes.
  const std::int64_t in_vain = core_.context.attended().value - session.unanswered_from.value;
  if (session.unanswered > Timers::kUnansweredIsSilent &&
      in_vain / kInVain >= core_.context.config.peer_timeout.value) {
    return life_.lose(session, session.doubt == LossReason::none ? LossReason::silent : session.doubt);
  }
  if (session.go_back_n) {
    core_.context.counters.timeouts.add(1);
    recovery_.on_timeout(session);
    session.ping = true;  // unless a fragment goes out first
  } else if (session.unanswered >= kUnansweredGivesWay && recovery_.give_way(session)) {
    core_.context.counters.timeouts.add(1);
    session.ping = true;
  } else {
    core_.context.counters.probes.add(1);
    // If it is long packets that vanish, only a short one can tell, and it may be lost, too.
    const bool doubtful = (session.unanswered % 2 == 0 || session.vanished != 0) && recovery_.large_in_flight(session);
    (doubtful ? session.ping : session.probe) = true;
  }
  core_.ready.add(session);
}

}  // namespace warpline::message
