// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/timers.h"

#include <algorithm>

namespace warpline::message {
namespace {

constexpr Nanos kTick{1000};
constexpr std::int64_t kPollingSlack = 15'000;            ///< nanoseconds
constexpr std::uint32_t kFewSessions = 8;                 ///< with a timer: disarm() leaves it
constexpr std::int64_t kDoubtedPatience = 1'000'000'000;  ///< nanoseconds at most
constexpr std::int64_t kRoomPatience = 125'000'000;       ///< nanoseconds at most

}  // namespace

Timers::Timers(const EndpointContext& endpoint, SessionTable& sessions)
    : endpoint_(endpoint), sessions_(sessions), wheel_(3 * sessions.size(), kTick, endpoint.now()) {}

void Timers::move(Session& session, Nanos at) {
  if (session.armed == kNever) {
    ++armed_;
  } else {
    wheel_.cancel(session.timer);
  }
  session.timer = wheel_.schedule(entry(session, Timer::due), at);
  session.armed = at;
}

void Timers::disarm(Session& session) {
  if (session.armed == kNever || armed_ <= kFewSessions || next_due(session) != kNever) return;
  wheel_.cancel(session.timer);
  session.armed = kNever;
  --armed_;
}

void Timers::pace(Session& session) {
  if (session.pacing_timer.scheduled()) return;
  session.pacing_timer = wheel_.schedule(entry(session, Timer::pacing), session.send_at);
}

void Timers::watch_idle(Session& session, Nanos at) {
  session.idle_timer = wheel_.schedule(entry(session, Timer::idle), at);
}

void Timers::cancel(Session& session) {
  if (wheel_.cancel(session.timer)) --armed_;
  wheel_.cancel(session.idle_timer);
  cancel_pacing(session);
  session.armed = kNever;
}

Nanos Timers::probe_timeout(const Session& session) const {
  const EndpointConfig& config = endpoint_.config;
  const unsigned backoff = session.unanswered == 0 ? 0 : session.unanswered - 1;
  const auto backed_off = [&](Nanos first) {
    if (backoff == 0) [[likely]]
      return std::min(first, config.max_rto);
    return doubled(first, backoff, longest_backoff(config, first, config.peer_timeout));
  };
  // With backoff, which eRPC lacks: on a path slower than the timeout all would be sent again for ever.
  if (session.go_back_n) return std::max(config.fixed_rto, backed_off(config.fixed_rto));
  if (!session.rtt.known()) return backed_off(config.initial_rto);
  const std::int64_t timeout = session.rtt.timeout(Nanos{1000}).value + session.max_ack_delay.value;
  const Nanos rto = backed_off(Nanos{std::max(timeout, config.min_rto.value)});
  if (session.unanswered != 0) return rto;
  // RFC 8985, section 7.2, and some more for a peer that polls.
  const std::int64_t probe = 2 * session.rtt.smoothed().value + session.max_ack_delay.value + kPollingSlack;
  return std::min(Nanos{probe}, rto);
}

std::int64_t Timers::doubt_patience() const {
  return std::min(endpoint_.config.peer_timeout.value / 8, kDoubtedPatience);
}

Nanos Timers::silent_at(const Session& session) const {
  const std::int64_t timeout = endpoint_.config.peer_timeout.value;
  const std::int64_t silent = session.quiet_from.value + timeout;
  if (session.doubt == LossReason::none) return {silent};
  const std::int64_t doubted = session.doubted_at.value + doubt_patience();
  if (session.doubt != LossReason::unreachable || session.opened_here) return {std::min(silent, doubted)};
  // A peer that opened the session may be behind a NAT that has another port for it now, and is found by its next sign
  // of life.
  const std::int64_t sign_of_life = std::max(timeout / 2, endpoint_.config.keepalive.value + timeout / 8);
  return {std::min(silent, std::max(doubted, session.quiet_from.value + sign_of_life))};
}

Nanos Timers::room_patience() const { return {std::min(endpoint_.config.peer_timeout.value / 8, kRoomPatience)}; }

Nanos Timers::next_due(const Session& session) const {
  const EndpointConfig& config = endpoint_.config;
  const auto after = [](Nanos time, std::int64_t wait) { return Nanos{time.value + wait}; };
  const auto attended_after = [&](Nanos time, std::int64_t wait) {
    return endpoint_.when_attended({time.value + wait});
  };
  Nanos due = std::min(session.first_deadline, session.retry_at);
  if (session.phase == SessionPhase::opening) {
    return std::min({due, session.next_hello, attended_after(session.opened, config.connect_timeout.value)});
  }
  if (session.phase != SessionPhase::established) return kNever;
  if (!session.confirmed) due = std::min(due, attended_after(session.opened, config.connect_timeout.value));
  due = std::min(due, session.reorder_at);
  if (session.stalled_at != kNever) due = std::min(due, endpoint_.when_attended(session.stalled_at));
  if (session.in_flight_packets != 0) {
    const Nanos probe = after(session.last_sent, probe_timeout(session).value);
    const Nanos silent = endpoint_.when_attended(silent_at(session));
    return std::min({due, probe, session.unanswered < kUnansweredIsSilent ? std::max(silent, probe) : silent});
  }
  // Nothing awaited: what raise_floor() kept in case that it was only late may go.
  if (session.sent.span() != 0 && session.lost_packets == 0) {
    due = std::min(due, after(session.last_sent, 2 * session.rtt.smoothed().value + 1000));
  }
  if (session.room_blocked && any(session.own, session.high_own)) {
    due = std::min(due, after(session.last_sent, room_patience().value));
  }
  return awaits(session) ? std::min(due, attended_after(session.quiet_from, config.peer_timeout.value / 4)) : due;
}

}  // namespace warpline::message
