// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/message/internal/core/endpoint_core.h"
#include "warpline/message/internal/receive/reassembly.h"
#include "warpline/message/internal/send/recovery.h"
#include "warpline/message/internal/session/session_life.h"
#include "warpline/message/internal/transfer/transfers.h"

namespace warpline::message {

/// What is done when something is due: hellos, probes and timeouts, deadlines, signs of life, the end of silent
/// sessions.
class Watch {
 public:
  Watch(EndpointCore& core, Transfers& transfers, Recovery& recovery, SessionLife& life, Reassembly& reassembly)
      : core_(core), transfers_(transfers), recovery_(recovery), life_(life), reassembly_(reassembly) {}

  /// Does what is due.
  void advance();
  /// When there is something to do next, by the caller's clock: a time in the past if at once, kNever if never.
  [[nodiscard]] Nanos next_deadline();
  /// The owner called last at `before`: it is late if something was due meanwhile.
  void note_absence(Nanos before);

 private:
  /// The same by the inner clock; kAtOnce if at once.
  [[nodiscard]] Nanos next_due();
  static constexpr Nanos kAtOnce{0};
  void on_timer(Session& session);
  void on_silence(Session& session);
  void on_probe_timeout(Session& session);
  /// Again and again from when the session is established until it is lost.
  void watch_idle(Session& session);
  void ping(Session& session);

  EndpointCore& core_;
  Transfers& transfers_;
  Recovery& recovery_;
  SessionLife& life_;
  Reassembly& reassembly_;
};

}  // namespace warpline::message
