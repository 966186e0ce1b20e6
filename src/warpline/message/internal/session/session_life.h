// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/message/counters.h"
#include "warpline/message/internal/core/endpoint_core.h"
#include "warpline/message/internal/send/packet_writer.h"
#include "warpline/message/internal/send/recovery.h"
#include "warpline/message/internal/transfer/transfers.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// How sessions begin and end. A lost session has no packets, messages or timers. Its event comes after those of all
/// its messages; nobody is told of one that a peer opened and never confirmed.
class SessionLife {
 public:
  SessionLife(EndpointCore& core, Transfers& transfers, Recovery& recovery, PacketWriter& writer)
      : core_(core), transfers_(transfers), recovery_(recovery), writer_(writer) {}

  /// From a clean slate to the phase `opening`; what names the session and its peer stays.
  void begin(Session& session);
  /// The session leaves whatever phase it is in; the peer is not told.
  void lose(Session& session, LossReason reason);

  /// The peer says that it drains.
  void peer_leaves(Session& session);
  /// If the peer drains, and nothing is left of either end's messages, the session ends. True: it has.
  [[nodiscard]] bool leave_if_over(Session& session);
  /// This end drains: the session's peer is to be told.
  void tell_going(Session& session);
  /// The time for draining is over: closes sessions that peers opened, all unless there are too many to say it of.
  void end_drain();

  // What the application does; endpoint.h says what each call means.
  CallStatus close(SessionId id);
  CallStatus forget(SessionId id);
  void drain(Nanos deadline);
  [[nodiscard]] bool drained() const {
    return core_.context.draining && core_.groups.accepted() == 0 && core_.strays.empty() && core_.farewells.empty();
  }
  [[nodiscard]] SessionFacts facts(SessionId id);

 private:
  void say_closed(Session& session);

  EndpointCore& core_;
  Transfers& transfers_;
  Recovery& recovery_;
  PacketWriter& writer_;
};

}  // namespace warpline::message
