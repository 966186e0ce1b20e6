// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/message/internal/endpoint_context.h"
#include "warpline/message/internal/receive/grants.h"
#include "warpline/message/internal/send/ready_queue.h"
#include "warpline/message/internal/send/recovery.h"
#include "warpline/message/internal/session/session_life.h"
#include "warpline/message/internal/session/stray_replies.h"
#include "warpline/message/internal/session/timers.h"
#include "warpline/message/internal/transfer/transfers.h"

namespace warpline {

/// What is done when something is due: hellos, probes and timeouts, deadlines, signs of life, the end of silent
/// sessions.
class Watch {
 public:
  Watch(EndpointContext& endpoint, Timers& timers, ReadyQueue& ready, Grants& grants, const StrayReplies& strays,
        Transfers& transfers, Recovery& recovery, SessionLife& life)
      : endpoint_(endpoint),
        timers_(timers),
        ready_(ready),
        grants_(grants),
        strays_(strays),
        transfers_(transfers),
        recovery_(recovery),
        life_(life) {}

  /// Does what is due.
  void advance();
  /// When there is something to do next, by the caller's clock: a time in the past if at once, kNever if never.
  [[nodiscard]] Nanos next_deadline();

 private:
  void on_timer(Session& session);
  void on_silence(Session& session);
  void on_probe_timeout(Session& session);
  /// Again and again from when the session is established until it is lost.
  void watch_idle(Session& session);
  void ping(Session& session);

  EndpointContext& endpoint_;
  Timers& timers_;
  ReadyQueue& ready_;
  Grants& grants_;
  const StrayReplies& strays_;
  Transfers& transfers_;
  Recovery& recovery_;
  SessionLife& life_;
};

}  // namespace warpline
