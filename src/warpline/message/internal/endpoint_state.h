// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/message/config.h"
#include "warpline/message/internal/core/endpoint_core.h"
#include "warpline/message/internal/datagrams/receiver.h"
#include "warpline/message/internal/datagrams/sender.h"
#include "warpline/message/internal/receive/reassembly.h"
#include "warpline/message/internal/send/packet_writer.h"
#include "warpline/message/internal/send/recovery.h"
#include "warpline/message/internal/session/handshake.h"
#include "warpline/message/internal/session/path_validation.h"
#include "warpline/message/internal/session/session_life.h"
#include "warpline/message/internal/session/watch.h"
#include "warpline/message/internal/transfer/event_reader.h"
#include "warpline/message/internal/transfer/submissions.h"
#include "warpline/message/internal/transfer/transfers.h"

namespace warpline::message {

/// All of an endpoint: what there is, then those who do something with it, each of whom knows only some above itself.
/// The last five are what Endpoint's calls go to, besides the handshake and the life of sessions.
struct EndpointState {
  EndpointState(const EndpointConfig& config, Nanos now)
      : core(config, now),
        transfers(core),
        recovery(core, transfers),
        writer(core, recovery),
        life(core, transfers, recovery, writer),
        handshake(core, transfers, life),
        validation(core, recovery, writer, handshake.tokens()),
        reassembly(core, transfers),
        submissions(core, transfers),
        receiver(core, transfers, recovery, life, handshake, validation, reassembly),
        sender(core, transfers, recovery, writer, handshake),
        watch(core, transfers, recovery, life, reassembly),
        event_reader(core, transfers) {}

  /// A call begins, at this time of the caller's clock.
  void enter(Nanos outer) {
    const Nanos before = core.context.now();
    if (core.context.enter(outer) && core.context.now().value - before.value > EndpointContext::kUnnoticed)
        [[unlikely]] {
      watch.note_absence(before);
    }
  }

  EndpointCore core;

  Transfers transfers;
  Recovery recovery;
  PacketWriter writer;
  SessionLife life;
  Handshake handshake;
  PathValidation validation;
  Reassembly reassembly;

  Submissions submissions;
  Receiver receiver;
  Sender sender;
  Watch watch;
  EventReader event_reader;
};

}  // namespace warpline::message
