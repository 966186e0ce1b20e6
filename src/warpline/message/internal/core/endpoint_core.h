// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/message/config.h"
#include "warpline/message/internal/core/endpoint_context.h"
#include "warpline/message/internal/core/event_queue.h"
#include "warpline/message/internal/core/grants.h"
#include "warpline/message/internal/core/message_pool.h"
#include "warpline/message/internal/core/path_table.h"
#include "warpline/message/internal/core/peer_groups.h"
#include "warpline/message/internal/core/ready_queue.h"
#include "warpline/message/internal/core/session_table.h"
#include "warpline/message/internal/core/slot_queue.h"
#include "warpline/message/internal/core/stranger_limit.h"
#include "warpline/message/internal/core/stray_replies.h"
#include "warpline/message/internal/core/timers.h"
#include "warpline/message/internal/parts/sent_packets.h"

namespace warpline::message {

/// What there is in an endpoint: each part keeps its own invariants, and knows only parts above itself. Those who do
/// something with them have them all: one reference instead of ten, since each more is a load in every function.
struct EndpointCore {
  /// A tenth of a second's packets; and as many as it takes that one peer opens all sessions at once, with hellos that
  /// come again because too many are half-open.
  [[nodiscard]] static std::uint32_t stranger_burst(std::uint32_t packets_per_s, std::uint32_t max_sessions) {
    return std::max(packets_per_s / 10, 16 * max_sessions);
  }

  /// `config` has a secret.
  EndpointCore(const EndpointConfig& config, Nanos now)
      : context(config, now),
        sessions(config, sip_key(*config.secret)),
        groups(context.config, sip_key(*config.secret)),
        paths(context, sessions, sip_key(*config.secret)),
        messages(context.config, groups),
        slot_queue(context.config, messages),
        blocks(config.max_sent_packets / SentBlock::kPackets, config.max_sessions),
        timers(context, sessions),
        ready(sessions, blocks),
        events(sessions, messages, groups),
        grants(context, sessions, messages, timers),
        farewells(config.max_sessions),
        strangers(config.stranger_packets, stranger_burst(config.stranger_packets, config.max_sessions),
                  sip_key(*config.secret)),
        proven(config.stranger_packets, stranger_burst(config.stranger_packets, config.max_sessions),
               sip_key(*config.secret)) {}

  EndpointContext context;
  SessionTable sessions;
  PeerGroups groups;
  PathTable paths;
  MessagePool messages;
  SlotQueue slot_queue;
  SentBlocks blocks;
  Timers timers;
  ReadyQueue ready;
  EventQueue events;
  Grants grants;
  StrayReplies strays{StrayReplies::kUnknownPeers};
  StrayReplies farewells;   ///< to peers of sessions that this end has closed
  StrangerLimit strangers;  ///< packets without a session
  StrangerLimit proven;     ///< hellos that have proven their address
};

}  // namespace warpline::message
