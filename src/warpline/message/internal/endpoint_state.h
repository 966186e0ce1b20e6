// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/message/config.h"
#include "warpline/message/internal/endpoint_context.h"
#include "warpline/message/internal/index_pool.h"
#include "warpline/message/internal/receive/grants.h"
#include "warpline/message/internal/receive/reassembly.h"
#include "warpline/message/internal/receive/receiver.h"
#include "warpline/message/internal/send/packet_writer.h"
#include "warpline/message/internal/send/ready_queue.h"
#include "warpline/message/internal/send/recovery.h"
#include "warpline/message/internal/send/sender.h"
#include "warpline/message/internal/session/handshake.h"
#include "warpline/message/internal/session/handshake_tokens.h"
#include "warpline/message/internal/session/session_life.h"
#include "warpline/message/internal/session/session_table.h"
#include "warpline/message/internal/session/stray_replies.h"
#include "warpline/message/internal/session/timers.h"
#include "warpline/message/internal/session/watch.h"
#include "warpline/message/internal/transfer/event_queue.h"
#include "warpline/message/internal/transfer/event_reader.h"
#include "warpline/message/internal/transfer/message_pool.h"
#include "warpline/message/internal/transfer/submissions.h"
#include "warpline/message/internal/transfer/transfers.h"

namespace warpline {

/// All of an endpoint: each part knows only parts above itself. The first ones hold what there is, the others do
/// something with it, and the last ones are what Endpoint's calls go to.
struct EndpointState {
  EndpointState(const EndpointConfig& config, Nanos now)
      : context(config, now),
        sessions(config, sip_key(config.secret)),
        blocks(config.max_sent_packets / SentBlock::kPackets),
        messages(context.config),
        tokens(sip_key(config.secret)),
        timers(context, sessions),
        ready(sessions, blocks),
        events(sessions, messages),
        grants(context, sessions, messages, timers),
        transfers(context, sessions, messages, timers, events, ready, grants),
        recovery(context, blocks, timers, ready, transfers),
        writer(context, sessions, messages, recovery),
        life(context, sessions, timers, events, strays, transfers, recovery, writer),
        handshake(context, sessions, timers, events, ready, strays, tokens, transfers, life),
        reassembly(context, messages, ready, grants, transfers),
        submissions(context, sessions, messages, timers, transfers),
        receiver(context, sessions, messages, timers, ready, transfers, recovery, life, handshake, reassembly),
        sender(context, sessions, messages, timers, ready, grants, strays, transfers, recovery, writer, handshake),
        watch(context, timers, ready, grants, strays, transfers, recovery, life),
        event_reader(context, sessions, messages, events, transfers) {}

  EndpointContext context;

  SessionTable sessions;
  IndexPool<SentBlock> blocks;
  MessagePool messages;
  StrayReplies strays;
  HandshakeTokens tokens;
  Timers timers;
  ReadyQueue ready;
  EventQueue events;
  Grants grants;

  Transfers transfers;
  Recovery recovery;
  PacketWriter writer;
  SessionLife life;
  Handshake handshake;
  Reassembly reassembly;

  Submissions submissions;
  Receiver receiver;
  Sender sender;
  Watch watch;
  EventReader event_reader;
};

}  // namespace warpline
