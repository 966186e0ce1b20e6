// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "warpline/message/datagram.h"
#include "warpline/message/endpoint.h"
#include "warpline/message/internal/endpoint_context.h"
#include "warpline/message/internal/index_pool.h"
#include "warpline/message/internal/receive/grants.h"
#include "warpline/message/internal/send/packet_writer.h"
#include "warpline/message/internal/send/ready_queue.h"
#include "warpline/message/internal/send/recovery.h"
#include "warpline/message/internal/session/handshake.h"
#include "warpline/message/internal/session/handshake_tokens.h"
#include "warpline/message/internal/session/session_life.h"
#include "warpline/message/internal/session/session_table.h"
#include "warpline/message/internal/session/stray_replies.h"
#include "warpline/message/internal/session/timers.h"
#include "warpline/message/internal/transfer/event_queue.h"
#include "warpline/message/internal/transfer/event_reader.h"
#include "warpline/message/internal/transfer/message_pool.h"
#include "warpline/message/internal/transfer/submissions.h"
#include "warpline/message/internal/transfer/transfers.h"

namespace warpline {

class FetchAhead;

/// All of an endpoint. Its members are grouped by the files that define them; each group is one concern.
struct EndpointState {
  EndpointState(const EndpointConfig& config, Nanos now);

  EndpointContext endpoint_;
  std::uint32_t least_head;  ///< bytes that Outgoing::head_capacity must be
  SessionTable sessions_;
  IndexPool<SentBlock> blocks_;
  MessagePool messages_;
  Timers timers_;
  EventQueue events_;
  ReadyQueue ready_;
  Grants grants_;
  StrayReplies strays_;
  HandshakeTokens tokens_;
  Transfers transfers_;
  Recovery recovery_;
  PacketWriter writer_;
  SessionLife life_;
  Handshake handshake_;
  Submissions submissions_;
  EventReader event_reader_;

  // receive.cc
  void receive(std::span<const Datagram> datagrams);
  void receive_one(const Datagram& datagram, FetchAhead& ahead);
  [[nodiscard]] bool parse_or_drop(const Datagram& datagram, MessageHeader& header);
  void receive_packets(const Datagram& datagram, FetchAhead& ahead);
  void receive_packet(const Datagram& datagram, const MessageHeader& header);
  [[nodiscard]] Session* session_of(const MessageHeader& header, const Datagram& datagram);
  void take_packet(Session& session, const MessageHeader& header, const Datagram& datagram);
  [[nodiscard]] bool authentic(Session& session, const MessageHeader& header, const Datagram& datagram);
  [[nodiscard]] std::uint32_t take_bundle(Session& session, const MessageHeader& header, const Datagram& datagram);
  void schedule_ack(Session& session, const MessageHeader& header, bool in_order);

  // fragments.cc: false if the packet, or this fragment of a bundle, must not count as received.
  [[nodiscard]] bool take_fragment(Session& session, const Datagram& datagram, std::uint32_t at,
                                   const MessageFragment& fragment, std::uint32_t length);
  [[nodiscard]] bool take_incoming(Session& session, const Datagram& datagram, std::uint32_t at,
                                   const MessageFragment& fragment, std::uint32_t length);
  [[nodiscard]] bool take_response(Session& session, const Datagram& datagram, std::uint32_t at,
                                   const MessageFragment& fragment, std::uint32_t length);
  enum class Placed : std::uint8_t { no, yes, complete };
  [[nodiscard]] Placed place(Message& message, Session& session, const Datagram& datagram, std::uint32_t at,
                             const MessageFragment& fragment, std::uint32_t length);
  [[nodiscard]] bool copy_in(const Datagram& datagram, std::uint32_t at, std::uint32_t length, std::uint8_t* to,
                             bool device);
  void take_cancel(Session& session, const MessageFragment& fragment);
  void take_refusal(Session& session, const MessageFragment& fragment);

  // busy.cc
  void tell_busy(Session& session, const MessageFragment& fragment, std::uint16_t refusal = 0);
  void take_busy(Session& session, const MessageFragment& fragment);
  [[nodiscard]] bool refuse(Session& session, const MessageFragment& fragment, RefusalCode code);
  void supersede(Session& session, std::uint32_t slot);
  void whole(Session& session, std::uint32_t index);
  void hold_back(Session& session, std::uint32_t index);
  void skip_order(Session& session, std::uint16_t order);
  void deliver_in_order(Session& session);

  // grants
  void send_grants(std::span<Outgoing> out, std::size_t& count);

  // transmit.cc
  std::size_t transmit(std::span<Outgoing> out);
  /// Whether there is another packet to be written, with room for any head.
  [[nodiscard]] bool has_room(std::span<Outgoing> out, std::size_t count) {
    if (count >= out.size()) return false;
    if (out[count].head_capacity >= least_head) return true;
    endpoint_.counters.heads_too_small.add(1);
    return false;
  }
  static void prepare(Outgoing& packet);
  void address(const Session& session, Outgoing& packet);
  [[nodiscard]] bool join(const Session& session, Outgoing& before, std::uint32_t& last, const Outgoing& packet) const;
  bool send_from(Session& session, std::span<Outgoing> out, std::size_t& count);

  // schedule.cc: true if `out` is a packet now.
  [[nodiscard]] bool send_one(Session& session, Outgoing& out);
  [[nodiscard]] bool send_next(Session& session, Draft& draft);
  // True if one more fragment is in `draft`, which may have begun.
  [[nodiscard]] bool send_lost(Session& session, Draft& draft);
  [[nodiscard]] bool send_new(Session& session, MessageList& list, bool own, Draft& draft);
  [[nodiscard]] bool send_probe(Session& session, Draft& draft);
  [[nodiscard]] bool send_bare(Session& session, Outgoing& out);
  [[nodiscard]] bool may_send(Session& session, std::uint32_t bytes, bool joins);

  // timers.cc
  void advance();
  void on_timer(Session& session);
  void on_silence(Session& session);
  void watch_idle(Session& session);
  void ping(Session& session);
  void on_probe_timeout(Session& session);
  [[nodiscard]] Nanos next_deadline();
};

}  // namespace warpline
