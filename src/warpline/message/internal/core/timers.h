// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "warpline/base/time/pacing_wheel.h"
#include "warpline/message/internal/core/endpoint_context.h"
#include "warpline/message/internal/core/session_table.h"

namespace warpline::message {

/// A time doubled so often, `most` at most: the backoff of what is not answered.
[[nodiscard]] constexpr Nanos doubled(Nanos time, unsigned times, Nanos most) {
  return times >= 63 || time.value > most.value >> times ? most : Nanos{time.value << times};
}

/// The longest backoff of what is sent again, first after `first`, until the peer is lost after `timeout`. The timeout
/// has room for 16 tries at least: by few, each of which may be lost, a peer that lives would be lost now and then.
[[nodiscard]] constexpr Nanos longest_backoff(const EndpointConfig& config, Nanos first, Nanos timeout) {
  constexpr std::int64_t kTries = 16;
  return std::min(config.max_rto, std::max(first, Nanos{timeout.value / kTries}));
}

/// When something of a session is due, and the wheel that tells. One timer a session for all that is due, lazy: it is
/// moved only when something is due earlier, and who is told finds out what is due. A session that awaits nothing has
/// none: of thousands, each moved to the far end of the wheel and back, none of their neighbours there is in the cache.
/// Signs of life of such are up to a second timer that stays where it is while requests come and go. A third one is for
/// pacing.
class Timers {
 public:
  enum class Timer : std::uint8_t { due, idle, pacing };

  /// Signs of life without an answer before silence counts.
  static constexpr std::uint8_t kUnansweredIsSilent = 2;

  Timers(const EndpointContext& endpoint, SessionTable& sessions);

  /// At `at` at the latest the session's timer fires.
  void arm(Session& session, Nanos at) {
    if (at < session.armed) move(session, at);
  }
  void arm_next(Session& session) { arm(session, next_due(session)); }
  /// Nothing is in flight any more. Of many sessions each is then silent for long: to take its timer away costs less
  /// than to find out, when it fires, that nothing is due. Of few, the next request finds the timer as it is.
  void disarm(Session& session);
  /// At Session::send_at the session is told, once.
  void pace(Session& session);
  /// The session waits for that no longer.
  void cancel_pacing(Session& session) { wheel_.cancel(std::exchange(session.pacing_timer, {})); }
  void watch_idle(Session& session, Nanos at);
  /// The session ends: none of its timers fires any more. What ends its messages may arm it, so this comes after that.
  void cancel(Session& session);

  /// Calls fn(Session&, Timer) for each timer that fires.
  template <typename Fn>
  void advance(Fn&& fn) {
    wheel_.advance(endpoint_.now(), [&](std::uint32_t entry) {
      Session& session = sessions_[entry / kTimers];
      const auto timer = static_cast<Timer>(entry % kTimers);
      if (timer == Timer::due) {
        session.armed = kNever;
        --armed_;
      } else if (timer == Timer::pacing) {
        session.pacing_timer = {};
      }
      fn(session, timer);
    });
  }
  [[nodiscard]] Nanos next_deadline() const { return wheel_.next_deadline(); }

  /// How long an acknowledgement may take before something is sent for it.
  [[nodiscard]] Nanos probe_timeout(const Session& session) const;
  /// How long a peer that somebody says is gone has to answer, and is not asked again: nanoseconds.
  [[nodiscard]] std::int64_t doubt_patience() const;
  /// When a peer that stays silent is lost, if something is awaited; attended(). Sooner, if somebody says that it is
  /// gone: it was asked then, and if it is there it answers soon.
  [[nodiscard]] Nanos silent_at(const Session& session) const;
  /// How long the peer may leave its room closed before it is asked: what said that it is open may be lost.
  [[nodiscard]] Nanos room_patience() const;
  /// When something is due next; kNever if never.
  [[nodiscard]] Nanos next_due(const Session& session) const;

 private:
  static constexpr std::uint32_t kTimers = 4;  ///< entries' values are a session's index times this, and the timer

  [[nodiscard]] std::uint32_t entry(const Session& session, Timer timer) const {
    return sessions_.index_of(session) * kTimers + static_cast<std::uint32_t>(timer);
  }
  void move(Session& session, Nanos at);

  const EndpointContext& endpoint_;
  SessionTable& sessions_;
  PacingWheel<std::uint32_t> wheel_;
  std::uint32_t armed_ = 0;  ///< sessions with a Timer::due in the wheel
};

}  // namespace warpline::message
